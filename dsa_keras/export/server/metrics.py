"""Prometheus metrics of a server, in a registry of its own so that servers do not mix."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

PATH = "/monitoring/prometheus/metrics"
"""Where TensorFlow Serving has them too, see export/serving/monitoring.config."""

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Requests by outcome and time, sizes of batches, rows waiting, versions loaded."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        # The label values come from a fixed set: a client cannot make the registry grow.
        self._requests = Counter(
            "dsa_serving_requests",
            "Requests answered, by interface (REST, gRPC) and status code",
            ["interface", "code"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "dsa_serving_request_seconds",
            "Time from a request's arrival to its answer",
            ["interface"],
            registry=self.registry,
        )
        self._batch_rows = Histogram(
            "dsa_serving_batch_rows",
            "Rows in each batch that the model ran",
            buckets=[0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512],
            registry=self.registry,
        )
        self._waiting = Gauge(
            "dsa_serving_waiting_rows", "Rows in the queue", registry=self.registry
        )
        self._version = Gauge(
            "dsa_serving_model_version",
            "1 for a version that answers requests, 0 for one that did",
            ["model", "version"],
            registry=self.registry,
        )

    def request(self, interface: str, code: str, seconds: float) -> None:
        """Counts an answered request."""
        self._requests.labels(interface, code).inc()
        self._seconds.labels(interface).observe(seconds)

    def batch(self, rows: int) -> None:
        """Counts a batch."""
        self._batch_rows.observe(rows)

    def waiting(self, rows: int) -> None:
        """Sets how many rows wait."""
        self._waiting.set(rows)

    def version(self, model: str, version: int, *, available: bool) -> None:
        """Sets whether a version answers."""
        self._version.labels(model, version).set(available)

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self.registry)
