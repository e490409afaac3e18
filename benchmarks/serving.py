"""How fast the local server answers, over REST and gRPC, with batching and without.

    python -m benchmarks.serving --model models/sentiment [--seconds 3] [--write]
    python -m benchmarks.serving --run runs/sentiment

Each line of the table is a number of clients that ask about one sentence after another, each a new
one as soon as it has its answer. The server is `dsa-keras serve` in its own process; the
clients share this one, and both share the machine's cores, so the numbers are those of a laptop
that asks itself. The yardstick is the model called in-process, one sentence at a time.

Start-up is the time from starting the process to the line that says it is ready, with the version's
warm-up requests and without, and then the time of the first answer.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import RESULTS, ROOT, provenance
from dsa_keras.datasets import load_dataset
from dsa_keras.errors import ConfigError
from dsa_keras.files import write_json

RESULT = RESULTS / "serving.json"
CLIENTS = (1, 8, 64)
Row = dict[str, str]
Ask = Callable[[Row], Awaitable[None]]


@contextlib.contextmanager
def server(folder: Path, *options: str) -> Iterator[tuple[str, str, float]]:
    """A server process: address of its REST and gRPC interface, and seconds until it was ready."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "dsa_keras", "serve", str(folder), "--rest-port", "0"]
    process = subprocess.Popen(
        [*command, "--grpc-port", "0", *options],
        cwd=ROOT,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout
        line = process.stdout.readline()
        seconds = time.perf_counter() - start
        match = re.search(r"REST (\S+)/v1/models, gRPC (\S+)$", line)
        if not match:
            raise ConfigError("the server did not start", where=folder, hint="Try it by hand")
        yield match[1], match[2], seconds
    finally:
        process.terminate()
        process.wait()


@contextlib.asynccontextmanager
async def rest(address: str, name: str) -> Any:
    import aiohttp

    url = f"{address}/v1/models/{name}:predict"
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def ask(row: Row) -> None:
            async with session.post(url, json={"instances": [row]}) as response:
                answer = await response.json()
                if response.status != 200:
                    raise RuntimeError(answer["error"])

        yield ask


@contextlib.asynccontextmanager
async def grpc(address: str, name: str) -> Any:
    import tensorflow as tf
    from grpc import aio
    from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

    async with aio.insecure_channel(address) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)

        async def ask(row: Row) -> None:
            request = predict_pb2.PredictRequest(model_spec={"name": name})
            for key, text in row.items():
                request.inputs[key].CopyFrom(tf.make_tensor_proto([text]))
            await stub.Predict(request)

        yield ask


async def measure(ask: Ask, rows: list[Row], clients: int, seconds: float) -> dict[str, float]:
    """Requests a second and percentiles of `clients` that ask for so many seconds."""
    times: list[float] = []

    async def client(number: int, end: float) -> None:
        place = number
        while (start := time.perf_counter()) < end:
            await ask(rows[place % len(rows)])
            times.append(time.perf_counter() - start)
            place += clients

    async def crowd(length: float) -> float:
        begin = time.perf_counter()
        await asyncio.gather(*(client(n, begin + length) for n in range(clients)))
        return time.perf_counter() - begin

    await crowd(seconds / 6)
    times.clear()
    return summary(times, await crowd(seconds))


def summary(times: list[float], seconds: float) -> dict[str, float]:
    p50, p99 = np.percentile(times, [50, 99]) * 1000
    return {
        "requests_per_second": round(len(times) / seconds, 1),
        "p50_ms": round(float(p50), 2),
        "p99_ms": round(float(p99), 2),
    }


def in_process(version: Path, rows: list[Row], seconds: float) -> dict[str, float]:
    """The model called in this process, one sentence at a time."""
    import tensorflow as tf

    call = tf.saved_model.load(str(version)).signatures["serving_default"]
    times: list[float] = []
    for length in (seconds / 6, seconds):
        times.clear()
        begin = time.perf_counter()
        while (start := time.perf_counter()) < begin + length:
            row = rows[len(times) % len(rows)]
            outputs = call(**{key: tf.constant([text]) for key, text in row.items()})
            for output in outputs.values():
                output.numpy()
            times.append(time.perf_counter() - start)
    return summary(times, time.perf_counter() - begin)


async def first_answer(address: str, name: str, row: Row) -> float:
    async with rest(address, name) as ask:
        start = time.perf_counter()
        await ask(row)
        return time.perf_counter() - start


async def load(rest_address: str, grpc_address: str, name: str, rows: list[Row], args: Any) -> Any:
    found = []
    for interface, connect, address in (("REST", rest, rest_address), ("gRPC", grpc, grpc_address)):
        for clients in CLIENTS:
            async with connect(address, name) as ask:
                numbers = await measure(ask, rows, clients, args.seconds)
            found.append({"interface": interface, "clients": clients, **numbers})
    return found


def rows_for(version: Path) -> list[Row]:
    """Sentences of the generated data, under the names that the model takes."""
    from tensorflow.core.protobuf import saved_model_pb2

    message = saved_model_pb2.SavedModel.FromString((version / "saved_model.pb").read_bytes())
    names = sorted(message.meta_graphs[0].signature_def["serving_default"].inputs)
    texts = [str(text) for text in load_dataset("demo-sentiment", size=500)["train"].texts]
    return [
        {name: texts[(row + 7 * place) % len(texts)] for place, name in enumerate(names)}
        for row in range(len(texts))
    ]


def run(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    folder = folder.resolve()
    versions = [int(path.name) for path in folder.iterdir() if path.name.isdigit()]
    if not versions:
        raise ConfigError("has no version folder", where=folder)
    version = folder / str(max(versions))
    rows, name = rows_for(version), folder.name
    results: dict[str, Any] = {
        "bytes_on_disk": sum(p.stat().st_size for p in version.rglob("*") if p.is_file()),
        "words_per_sentence": float(np.mean([len(" ".join(r.values()).split()) for r in rows])),
        "in_process": in_process(version, rows, args.seconds),
        "start_up": {},
        "load": [],
    }
    print(line("in-process", "", 1, results["in_process"]), flush=True)
    for batching in ("on", "off"):
        with server(folder, *(["--no-batching"] if batching == "off" else [])) as found:
            *addresses, ready = found
            if batching == "on":
                first = asyncio.run(first_answer(addresses[0], name, rows[0]))
                results["start_up"]["warm-up"] = {"ready_s": ready, "first_answer_s": first}
            for numbers in asyncio.run(load(*addresses, name, rows, args)):
                results["load"].append({"batching": batching, **numbers})
                print(line(numbers["interface"], batching, numbers["clients"], numbers), flush=True)
    with server(folder, "--no-warm-up") as (address, _, ready):
        first = asyncio.run(first_answer(address, name, rows[0]))
        results["start_up"]["no warm-up"] = {"ready_s": ready, "first_answer_s": first}
    for kind, times in results["start_up"].items():
        times |= {key: round(seconds, 3) for key, seconds in times.items()}
        ready, first = times["ready_s"], times["first_answer_s"]
        print(f"start-up, {kind}: ready after {ready:.1f} s, first answer in {first * 1000:.0f} ms")
    print(f"size on disk: {results['bytes_on_disk'] / 1e6:.1f} MB")
    return results


def line(interface: str, batching: str, clients: int, numbers: dict[str, Any]) -> str:
    return (
        f"{interface:10} {batching:8} {clients:7} {numbers['requests_per_second']:10.1f} "
        f"{numbers['p50_ms']:9.2f} {numbers['p99_ms']:9.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--run", type=Path, help="a run folder, exported for the occasion")
    source.add_argument("--model", type=Path, help="the folder of an exported model's versions")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each line (default: 3)")
    parser.add_argument("--write", action="store_true", help="write results/serving.json")
    args = parser.parse_args()
    print(f"{'interface':10} {'batching':8} {'clients':>7} {'requests/s':>10} ", end="")
    print(f"{'p50 ms':>9} {'p99 ms':>9}", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.model
        if args.run:
            from dsa_keras.export.saved_model import export_saved_model

            folder = Path(temporary) / "model"
            export_saved_model(args.run, folder)
        results = run(folder, args)
    if args.write:
        write_json(RESULT, {"provenance": provenance(), **results})
        print(json.dumps({"written": RESULT.name}))


if __name__ == "__main__":
    main()
