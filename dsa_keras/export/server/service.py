"""What both interfaces ask: models by name, their status and metadata, and the queue."""

from __future__ import annotations

from typing import Any

from tensorflow_serving.apis import get_model_metadata_pb2, get_model_status_pb2

from dsa_keras.export.server.batching import Batcher
from dsa_keras.export.server.metrics import Metrics
from dsa_keras.export.server.models import Model
from dsa_keras.export.server.options import ServerOptions
from dsa_keras.export.server.status import ServingError


class Service:
    """The models of a server and the queue in front of them."""

    def __init__(
        self, options: ServerOptions, models: list[Model], batcher: Batcher, metrics: Metrics
    ) -> None:
        self.options, self.batcher, self.metrics = options, batcher, metrics
        self._models = {model.name: model for model in models}

    def model(self, name: str) -> Model:
        """The model of this name.

        Raises:
            ServingError: if there is none.
        """
        try:
            return self._models[name]
        except KeyError:
            raise ServingError(
                "NOT_FOUND", f"Servable not found for request: Latest({name})"
            ) from None

    def status(self, name: str, version: int | None, label: str | None) -> Any:
        """The GetModelStatusResponse of a model."""
        if name not in self._models:
            raise ServingError("NOT_FOUND", f"Could not find any versions of model {name}")
        response = get_model_status_pb2.GetModelStatusResponse()
        for known in self._models[name].status(version, label):
            entry = response.model_version_status.add(version=known.number)
            entry.state = entry.State.Value(known.state)
            # 2 is UNKNOWN: what a loader may say has no code of its own.
            entry.status.error_code = 2 if known.error else 0
            entry.status.error_message = known.error
        return response

    def metadata(self, name: str, version: int | None, label: str | None) -> tuple[int, Any]:
        """The version asked for and its signatures, a SignatureDefMap."""
        with self.model(name).use(version, label) as (number, model):
            definitions = get_model_metadata_pb2.SignatureDefMap()
            for key, definition in model.definitions.items():
                definitions.signature_def[key].CopyFrom(definition)
            return number, definitions
