"""The life of a server: load, listen, follow the folders, stop when told and all is answered."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from dsa_keras.errors import RunError
from dsa_keras.export.server.batching import Batcher
from dsa_keras.export.server.grpc_service import Grpc
from dsa_keras.export.server.metrics import Metrics
from dsa_keras.export.server.models import Model
from dsa_keras.export.server.options import ServerOptions, address
from dsa_keras.export.server.ports import cannot_listen
from dsa_keras.export.server.rest import Rest
from dsa_keras.export.server.service import Service
from dsa_keras.export.server.status import ServingError

log = logging.getLogger("dsa_keras.export.serve")


class Server:
    """A server for one event loop.

    Args:
        options: what to serve, and how.
    """

    def __init__(self, options: ServerOptions) -> None:
        self.options = options
        self._runners = ThreadPoolExecutor(options.num_batch_threads, "model")
        self._loader = ThreadPoolExecutor(1, "loader")
        self.metrics = Metrics()
        self._models = [
            Model(folder, options.labels, self._loader, self.metrics, warm_up=options.warm_up)
            for folder in options.folders
        ]
        batcher = Batcher(options, self._runners, self.metrics)
        service = Service(options, self._models, batcher, self.metrics)
        self._rest, self._grpc = Rest(service), Grpc(service)
        self._watcher: asyncio.Task | None = None
        self.rest_port = self.grpc_port = 0

    @property
    def rest_url(self) -> str:
        """The address of the REST interface."""
        return f"http://{address(self.options.host, self.rest_port)}"

    @property
    def grpc_address(self) -> str:
        """The address of the gRPC interface, without a scheme."""
        return address(self.options.host, self.grpc_port)

    async def start(self) -> None:
        """Loads the models, then listens.

        Raises:
            RunError: if a model has no version that loads, or a label none that does.
            ConfigError: if a port is taken.
        """
        for model in self._models:
            await model.refresh()
            self._check_loaded(model)
        try:
            self.rest_port = await self._rest.start()
        except OSError as error:
            where = address(self.options.host, self.options.rest_port)
            raise cannot_listen(where, "REST", "--rest-port", error.strerror) from None
        self.grpc_port = await self._grpc.start()
        self._watcher = asyncio.create_task(self._watch())

    def ready_line(self) -> str:
        """Says what answers, and where."""
        models = ", ".join(f"{m.name} version {self._highest(m)}" for m in self._models)
        return f"serving {models}: REST {self.rest_url}/v1/models, gRPC {self.grpc_address}"

    async def stop(self) -> None:
        """Stops listening, finishes the requests under way, and lets go of the models."""
        if self._watcher:
            self._watcher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watcher
        await asyncio.gather(self._rest.stop(), self._grpc.stop())
        for model in self._models:
            model.close()
        self._runners.shutdown()
        self._loader.shutdown()

    def _check_loaded(self, model: Model) -> None:
        for label in (None, *self.options.labels):
            try:
                with model.use(label=label):
                    pass
            except ServingError:
                broken = "; ".join(f"{v.number}: {v.error}" for v in model.status() if v.error)
                what = "no version" if label is None else f"the version labelled {label}"
                raise RunError(
                    f"{what} of {model.name} can be loaded ({broken})",
                    hint="Export it again with dsa-keras export saved-model",
                ) from None

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self.options.poll_seconds)
            for model in self._models:
                try:
                    await model.refresh()
                except Exception:
                    log.exception("the folder of %s cannot be followed", model.name)

    def _highest(self, model: Model) -> int:
        with model.use() as (number, _):
            return number


@contextlib.contextmanager
def running(options: ServerOptions) -> Iterator[Server]:
    """A server in a thread of its own, for programs that are its client too.

    Example:
    ```python
    with running(ServerOptions((Path("models/sentiment"),), rest_port=0, grpc_port=0)) as server:
        print(server.rest_url, server.grpc_address)
    ```
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="server")
    thread.start()

    async def make() -> Server:
        server = Server(options)
        try:
            await server.start()
        except BaseException:
            await server.stop()
            raise
        return server

    try:
        server = asyncio.run_coroutine_threadsafe(make(), loop).result()
        try:
            yield server
        finally:
            asyncio.run_coroutine_threadsafe(server.stop(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
