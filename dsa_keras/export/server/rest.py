"""The REST interface of TensorFlow Serving, on aiohttp.

Paths, formats and errors are TensorFlow Serving's: a path or method it does not have is a
"Malformed request" (400), methods no path has are 405. Bodies are limited in size and time, and a
connection that does not send a whole request in time is closed, so slow clients cost a socket for a
while and nothing else.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from typing import Any

from aiohttp import web
from google.protobuf import json_format as proto_json

from dsa_keras.export.server import json_format, metrics
from dsa_keras.export.server.service import Service
from dsa_keras.export.server.status import HTTP_STATUS, ServingError, invalid

log = logging.getLogger("dsa_keras.export.serve")

_MODEL = (
    r"/v1/models/(?P<name>[^/:]+)(?:/versions/(?P<version>\d{1,18})|/labels/(?P<label>[^/:]+))?"
)
_PREDICT = re.compile(_MODEL + r":(?P<verb>classify|regress|predict)", re.IGNORECASE)
_STATUS = re.compile(_MODEL + r"(?P<metadata>/metadata)?", re.IGNORECASE)
_CODES = {status: code for code, status in reversed(HTTP_STATUS.items())}


class Rest:
    """The HTTP server in front of a service.

    Args:
        service: answers the requests.
    """

    def __init__(self, service: Service) -> None:
        self._service, self._options = service, service.options
        app = web.Application(client_max_size=self._options.max_body_bytes)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handle_signals=False,
            shutdown_timeout=self._options.request_timeout,
            # Counted from the start of a connection too: one that sends no request is closed.
            keepalive_timeout=self._options.request_timeout,
            lingering_time=min(2.0, self._options.request_timeout),
        )
        # aiohttp logs every malformed request with a traceback; the client is told, that is enough.
        logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)

    async def start(self) -> int:
        """Listens; returns the port."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._options.host, self._options.rest_port)
        await site.start()
        return self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Stops listening and finishes the requests under way."""
        await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        start = time.perf_counter()
        code = "OK"
        try:
            if request.path == metrics.PATH and request.method == "GET":
                text = self._service.metrics.text()
                return web.Response(body=text, headers={"Content-Type": metrics.CONTENT_TYPE})
            async with asyncio.timeout(self._options.request_timeout):
                return _json(200, await self._answer(request))
        except ServingError as error:
            code = error.code
            return _error(error.http_status, error.message)
        except TimeoutError:
            code = "DEADLINE_EXCEEDED"
            seconds = self._options.request_timeout
            return _error(HTTP_STATUS[code], f"Timed out after {seconds:g} seconds")
        except web.HTTPRequestEntityTooLarge:
            code = "RESOURCE_EXHAUSTED"
            most = self._options.max_body_bytes
            return _error(413, f"The body is longer than {most} bytes", close=True)
        except web.HTTPException as error:
            code = _CODES.get(error.status, "INVALID_ARGUMENT")
            return _error(error.status, error.text or error.reason, headers=error.headers)
        except (ConnectionError, asyncio.CancelledError):
            code = "CANCELLED"
            raise
        except Exception:
            code = "INTERNAL"
            log.exception("a REST request failed")
            return _error(500, "Internal error")
        finally:
            self._service.metrics.request("REST", code, time.perf_counter() - start)

    async def _answer(self, request: web.Request) -> bytes:
        method, path = request.method, request.path
        if method not in ("GET", "POST"):
            raise web.HTTPMethodNotAllowed(method, ["GET", "POST"], text=_malformed(method, path))
        if method == "POST" and (match := _PREDICT.fullmatch(path)):
            if (request.content_length or 0) > self._options.max_body_bytes:
                raise web.HTTPRequestEntityTooLarge(
                    max_size=self._options.max_body_bytes, actual_size=request.content_length or 0
                )
            return await self._predict(match, await request.read())
        if method == "GET" and (match := _STATUS.fullmatch(path)):
            version, label = _version(match), match["label"]
            if match["metadata"]:
                return json.dumps(_metadata(self._service, match["name"], version, label)).encode()
            status = self._service.status(match["name"], version, label)
            return _proto(status)
        if not path.lower().startswith("/v1/"):
            raise web.HTTPNotFound(text="Not Found")
        raise invalid(_malformed(method, path))

    async def _predict(self, match: re.Match[str], body: bytes) -> bytes:
        verb = match["verb"].lower()
        if verb != "predict":
            raise ServingError(
                "UNIMPLEMENTED", f"{verb} takes tf.Example and no signature here does: use predict"
            )
        with self._service.model(match["name"]).use(_version(match), match["label"]) as (_, model):
            request = json_format.parse(body)
            signature = model.signature(request.get("signature_name", ""))
            arrays = json_format.arrays_of(request, signature)
            outputs = await self._service.batcher.run(signature, arrays)
            return json_format.answer_of(outputs, request)


def _metadata(service: Service, name: str, version: int | None, label: str | None) -> Any:
    number, definitions = service.metadata(name, version, label)
    return {
        "model_spec": {"name": name, "signature_name": "", "version": str(number)},
        "metadata": {"signature_def": json.loads(_proto(definitions))},
    }


def _version(match: re.Match[str]) -> int | None:
    return int(match["version"]) if match["version"] else None


def _malformed(method: str, path: str) -> str:
    return f"Malformed request: {method} {path}"


def _proto(message: Any) -> bytes:
    return proto_json.MessageToJson(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    ).encode()


def _json(status: int, body: bytes, headers: Any = None) -> web.Response:
    kept = {"Allow": headers["Allow"]} if headers and "Allow" in headers else {}
    return web.Response(
        status=status, body=body, headers={**kept, "Content-Type": "application/json"}
    )


def _error(status: int, message: str, *, headers: Any = None, close: bool = False) -> web.Response:
    response = _json(status, json.dumps({"error": message}).encode(), headers)
    if close:
        response.force_close()
    return response
