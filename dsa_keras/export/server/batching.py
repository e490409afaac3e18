"""Requests that wait while the model is busy run together, in a bounded queue.

TensorFlow's own batching op (`tf.nondifferentiable_batch_function`) was tried first, in one run on
a busy machine of two cores, each with one thread: 64 clients of a small text model got 480 requests
a second from it (1 ms time-out) against 880 from a queue like this one (none), and one client 90
against 200. A rough comparison, but the op also needs a thread for every waiting request.

A batch starts as soon as a thread is free and its oldest request has waited `batch_timeout`, or it
is full. With the default of 0 a request never waits for others: batches form by themselves while
the threads are busy. Only requests for the same signature of the same version, with equal shapes
after the batch axis, can share a batch. If a shared batch fails, its requests run one by one, so
that a bad request cannot spoil its neighbours' answers.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import TYPE_CHECKING

import numpy as np

from dsa_keras.export.server.metrics import Metrics
from dsa_keras.export.server.options import ServerOptions
from dsa_keras.export.server.status import ServingError, invalid

if TYPE_CHECKING:
    from dsa_keras.export.server.signatures import Arrays, Signature


@dataclasses.dataclass(eq=False)
class _Request:
    inputs: Mapping[str, np.ndarray]
    rows: int
    arrived: float
    answer: asyncio.Future[Arrays]

    @property
    def places(self) -> int:
        """What it takes of the queue: an empty request is not free."""
        return max(self.rows, 1)


@dataclasses.dataclass
class _Queue:
    """Requests that may share a batch, or one that may not."""

    signature: Signature
    alone: bool
    requests: deque[_Request] = dataclasses.field(default_factory=deque)


class Batcher:
    """The queue in front of the models; lives in one event loop.

    Args:
        options: sizes and times.
        executor: threads that run the models, at least `options.num_batch_threads`.
        metrics: counts batches and waiting rows.
    """

    def __init__(self, options: ServerOptions, executor: Executor, metrics: Metrics) -> None:
        self._options, self._executor, self._metrics = options, executor, metrics
        self._capacity = options.max_enqueued_batches * options.max_batch_size
        self._queues: dict[tuple, _Queue] = {}
        self._waiting = 0
        self._free = options.num_batch_threads
        self._timer: asyncio.TimerHandle | None = None
        self._running: set[asyncio.Task] = set()

    async def run(self, signature: Signature, inputs: Mapping[str, np.ndarray]) -> Arrays:
        """Answers a request, possibly together with others.

        Raises:
            ServingError: if it does not fit the signature, is too large, or the queue is full.
        """
        rows = signature.check(inputs)
        most = self._options.max_batch_size
        if rows > most:
            raise invalid(f"Task size {rows} is larger than maximum input batch size {most}")
        loop = asyncio.get_running_loop()
        request = _Request(inputs, rows, loop.time(), loop.create_future())
        if self._waiting + request.places > self._capacity:
            raise ServingError(
                "RESOURCE_EXHAUSTED",
                "The batch scheduling queue to which this task was submitted is full",
            )
        # A request without rows has no row to cut widths by: it runs alone.
        alone = not (self._options.batching and signature.mergeable and rows)
        shapes = tuple((name, inputs[name].shape[1:]) for name in signature.inputs)
        key = (id(request),) if alone else (id(signature), shapes)
        self._queues.setdefault(key, _Queue(signature, alone)).requests.append(request)
        self._count(request.places)
        self._start_batches()
        try:
            return await request.answer
        finally:
            self._forget(key, request)

    def _start_batches(self) -> None:
        """Gives waiting batches to free threads, oldest first; sets a timer for those not due."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        loop = asyncio.get_running_loop()
        while self._free and self._queues:
            due = {key: self._due(queue) for key, queue in self._queues.items()}
            key = min(due, key=due.__getitem__)
            if due[key] > loop.time():
                self._timer = loop.call_at(due[key], self._start_batches)
                return
            signature, requests = self._queues[key].signature, self._take(key)
            self._free -= 1
            task = loop.create_task(self._run_batch(signature, requests))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    def _due(self, queue: _Queue) -> float:
        """When the oldest request has waited enough; at once if no other can join it."""
        rows = sum(request.rows for request in queue.requests)
        full = queue.alone or rows >= self._options.max_batch_size
        wait = 0.0 if full else self._options.batch_timeout_micros / 1e6
        return queue.requests[0].arrived + wait

    def _take(self, key: tuple) -> list[_Request]:
        """Takes the oldest requests of a queue that fit in one batch."""
        waiting, rows, taken = self._queues[key].requests, 0, list[_Request]()
        while waiting and (not taken or rows + waiting[0].rows <= self._options.max_batch_size):
            taken.append(waiting.popleft())
            rows += taken[-1].rows
            self._count(-taken[-1].places)
        self._drop_if_empty(key)
        return taken

    async def _run_batch(self, signature: Signature, requests: list[_Request]) -> None:
        loop = asyncio.get_running_loop()
        self._metrics.batch(sum(request.rows for request in requests))
        try:
            answers = await loop.run_in_executor(
                self._executor, _answers, signature, [request.inputs for request in requests]
            )
        finally:
            self._free += 1
            self._start_batches()
        for request, answer in zip(requests, answers, strict=True):
            if request.answer.done():
                continue
            if isinstance(answer, Exception):
                request.answer.set_exception(answer)
            else:
                request.answer.set_result(answer)

    def _forget(self, key: tuple, request: _Request) -> None:
        """Lets go of a request that was given up while it waited."""
        queue = self._queues.get(key)
        if queue and request in queue.requests:
            queue.requests.remove(request)
            self._count(-request.places)
            self._drop_if_empty(key)

    def _drop_if_empty(self, key: tuple) -> None:
        if not self._queues[key].requests:
            del self._queues[key]

    def _count(self, places: int) -> None:
        self._waiting += places
        self._metrics.waiting(self._waiting)


def _answers(
    signature: Signature, requests: list[Mapping[str, np.ndarray]]
) -> list[Arrays | Exception]:
    """Runs requests together, or one by one if that fails; runs in a thread."""
    try:
        return list(signature.run_merged(requests))
    except Exception as error:
        if len(requests) == 1:
            return [error]
    return [_answers(signature, [request])[0] for request in requests]
