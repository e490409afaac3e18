"""dsa-keras serve: answers requests for exported models, as TensorFlow Serving does."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import logging
import signal
import sys
from pathlib import Path
from typing import Any

from dsa_keras.command_line import example, load_tensorflow, require_extra
from dsa_keras.errors import ConfigError

DESCRIPTION = """\
Answers TensorFlow Serving's REST and gRPC requests for models made by "saved-model", on this
machine and without Docker. For production use TensorFlow Serving itself: the interface is the same,
and export/serving has its configuration.

The highest version answers; a new one is picked up without dropping a request. Listens on this
machine only unless --host says otherwise: there is neither encryption nor a password.
"""

_EXAMPLE = """
dsa-keras serve models/sentiment
curl -d '{"instances": ["a fine film"]}' http://127.0.0.1:8501/v1/models/sentiment:predict
"""


def add_parser(commands: Any) -> None:
    """Adds the command."""
    from dsa_keras.export.server.options import ServerOptions

    parser = commands.add_parser(
        "serve",
        help="answer requests on this machine",
        description=DESCRIPTION,
        epilog=example(_EXAMPLE),
    )
    parser.add_argument(
        "folders", type=Path, nargs="+", metavar="MODEL", help="folder of a model's versions"
    )
    parser.add_argument(
        "--label",
        action="append",
        default=[],
        metavar="LABEL=VERSION",
        help="name a version and keep it loaded, such as stable=1; may be repeated",
    )
    defaults = {field.name: field.default for field in dataclasses.fields(ServerOptions)}
    for name, kind, text in (
        ("host", str, "address to listen on"),
        ("rest_port", int, "port of the REST interface, 0 for a free one"),
        ("grpc_port", int, "port of the gRPC interface, 0 for a free one"),
        ("max_batch_size", int, "most rows in a request and in a merged batch"),
        ("batch_timeout_micros", int, "how long a request may wait for others to join it"),
        ("max_enqueued_batches", int, "full batches that may wait before requests are refused"),
        ("num_batch_threads", int, "batches that run at the same time"),
        ("max_body_bytes", int, "longest request body"),
        ("request_timeout", float, "seconds a request may take"),
        ("poll_seconds", float, "how often to look for new versions"),
    ):
        parser.add_argument(
            "--" + name.replace("_", "-"),
            type=kind,
            default=defaults[name],
            metavar={int: "N", float: "SECONDS", str: "ADDRESS"}[kind],
            help=f"{text} (default: {defaults[name]})",
        )
    parser.add_argument(
        "--no-batching", dest="batching", action="store_false", help="run every request by itself"
    )
    parser.add_argument(
        "--no-warm-up",
        dest="warm_up",
        action="store_false",
        help="skip the warm-up requests that a version brings",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serves until SIGTERM or Ctrl-C; 0 once every request under way is answered."""
    require_extra("export", "aiohttp", "prometheus_client", "tensorflow_serving")
    from dsa_keras.export.server.options import ServerOptions
    from dsa_keras.export.server.ports import check_ports

    names = {field.name for field in dataclasses.fields(ServerOptions)} - {"folders", "labels"}
    options = ServerOptions(
        folders=tuple(folder.resolve() for folder in args.folders),
        labels=_labels(args.label),
        **{name: getattr(args, name) for name in names},
    )
    check_ports(options)  # it takes seconds to load TensorFlow and the models
    logging.basicConfig(format="%(message)s", stream=sys.stderr)
    logging.getLogger("dsa_keras.export.serve").setLevel(logging.INFO)
    return asyncio.run(_serve(options))


async def _serve(options: Any) -> int:
    load_tensorflow()
    from dsa_keras.export.server.app import Server

    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    server = Server(options)
    starting, stopping = (asyncio.ensure_future(c) for c in (server.start(), stopped.wait()))
    try:
        await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
            print(server.ready_line(), flush=True)
            await stopping
    finally:
        for task in (starting, stopping):
            task.cancel()
        await asyncio.gather(starting, stopping, return_exceptions=True)
        await server.stop()
    return 0


def _labels(texts: list[str]) -> dict[str, int]:
    labels = {}
    for text in texts:
        label, _, version = text.partition("=")
        if not label or not (version.isascii() and version.isdigit()):
            raise ConfigError(
                f"{text!r} is not a label and a version number",
                where="--label",
                hint="Write it as stable=1",
            )
        labels[label] = int(version)
    return labels
