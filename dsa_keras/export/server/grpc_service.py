"""The gRPC interface of TensorFlow Serving: PredictionService and ModelService.

Classify, Regress, MultiInference and the reloading of configs keep the generated answer,
UNIMPLEMENTED: the models have no signature for them, and folders are watched instead.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

import grpc
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from dsa_keras.export.server.options import address
from dsa_keras.export.server.ports import cannot_listen
from dsa_keras.export.server.protos import array_of, message_of
from dsa_keras.export.server.service import Service
from dsa_keras.export.server.status import ServingError, invalid

log = logging.getLogger("dsa_keras.export.serve")


class Grpc:
    """The gRPC server in front of a service.

    Args:
        service: answers the requests.
    """

    def __init__(self, service: Service) -> None:
        self._options = service.options
        patience = int(self._options.request_timeout * 1000)
        self._server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", self._options.max_body_bytes),
                ("grpc.max_send_message_length", -1),
                ("grpc.server_handshake_timeout_ms", patience),
                ("grpc.keepalive_time_ms", patience),
                ("grpc.so_reuseport", 0),
            ]
        )
        answers = _Answers(service)
        prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(
            _Prediction(answers), self._server
        )
        model_service_pb2_grpc.add_ModelServiceServicer_to_server(_Models(answers), self._server)

    async def start(self) -> int:
        """Listens; returns the port.

        Raises:
            ConfigError: if the port is taken.
        """
        wanted = address(self._options.host, self._options.grpc_port)
        try:
            port = self._server.add_insecure_port(wanted)
        except RuntimeError:
            raise cannot_listen(wanted, "gRPC", "--grpc-port") from None
        await self._server.start()
        return port

    async def stop(self) -> None:
        """Stops listening and finishes the requests under way."""
        await self._server.stop(self._options.request_timeout)


class _Answers:
    """Runs a handler within the time allowed and turns its errors into statuses."""

    def __init__(self, service: Service) -> None:
        self.service = service

    async def run(self, handler: Callable[[], Awaitable[Any]], context: Any) -> Any:
        start, code = time.perf_counter(), "OK"
        limit = self.service.options.request_timeout
        try:
            async with asyncio.timeout(limit):
                return await handler()
        except ServingError as error:
            code = error.code
            await _abort(context, code, error.message)
        except TimeoutError:
            code = "DEADLINE_EXCEEDED"
            await _abort(context, code, f"Timed out after {limit:g} seconds")
        except asyncio.CancelledError:
            code = "CANCELLED"
            raise
        except Exception:
            code = "INTERNAL"
            log.exception("a gRPC request failed")
            await _abort(context, code, "Internal error")
        finally:
            self.service.metrics.request("gRPC", code, time.perf_counter() - start)


class _Prediction(prediction_service_pb2_grpc.PredictionServiceServicer):
    def __init__(self, answers: _Answers) -> None:
        self._answers, self._service = answers, answers.service

    async def Predict(self, request: Any, context: Any) -> Any:  # noqa: N802
        async def predict() -> Any:
            name, version, label = _asked(request.model_spec)
            with self._service.model(name).use(version, label) as (number, model):
                signature = model.signature(request.model_spec.signature_name)
                arrays = {key: array_of(value, key) for key, value in request.inputs.items()}
                for key in request.output_filter:
                    if key not in signature.outputs:
                        raise invalid(f"output tensor alias not found in signature: {key}")
                outputs = await self._service.batcher.run(signature, arrays)
            response = predict_pb2.PredictResponse()
            _set_spec(response.model_spec, name, number, signature.name)
            for key, array in outputs.items():
                if not request.output_filter or key in request.output_filter:
                    response.outputs[key].CopyFrom(message_of(array))
            return response

        return await self._answers.run(predict, context)

    async def GetModelMetadata(self, request: Any, context: Any) -> Any:  # noqa: N802
        async def metadata() -> Any:
            if list(request.metadata_field) != ["signature_def"]:
                raise invalid("Expected one metadata_field: signature_def")
            name, version, label = _asked(request.model_spec)
            number, definitions = self._service.metadata(name, version, label)
            response = get_model_metadata_pb2.GetModelMetadataResponse()
            _set_spec(response.model_spec, name, number)
            response.metadata["signature_def"].Pack(definitions)
            return response

        return await self._answers.run(metadata, context)


class _Models(model_service_pb2_grpc.ModelServiceServicer):
    def __init__(self, answers: _Answers) -> None:
        self._answers = answers

    async def GetModelStatus(self, request: Any, context: Any) -> Any:  # noqa: N802
        async def status() -> Any:
            return self._answers.service.status(*_asked(request.model_spec))

        return await self._answers.run(status, context)


def _asked(spec: Any) -> tuple[str, int | None, str | None]:
    if not spec.name:
        raise invalid("Missing ModelSpec")
    version = spec.version.value if spec.HasField("version") else None
    return spec.name, version, spec.version_label or None


def _set_spec(spec: Any, name: str, version: int, signature: str = "") -> None:
    spec.name, spec.version.value, spec.signature_name = name, version, signature


async def _abort(context: Any, code: str, message: str) -> NoReturn:
    await context.abort(getattr(grpc.StatusCode, code), message)
    raise AssertionError("abort returns")
