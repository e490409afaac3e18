"""dsa-keras client: asks a server, TensorFlow Serving or ours, over REST or gRPC.

REST needs nothing but Python, gRPC the package grpcio; neither loads TensorFlow.
"""

from __future__ import annotations

import argparse
import http.client
import json
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any

from dsa_keras.command_line import example, require_extra
from dsa_keras.errors import ConfigError, DataError, RunError

DESCRIPTION = """\
Asks a server about sentences and prints one line per sentence.

Without sentences they are read from standard input, one a line; pairs have a tab between them.
A version is asked for as /versions/2 and a label as /labels/stable at the end of the address.
"""

_EXAMPLE = """
dsa-keras client --url http://127.0.0.1:8501/v1/models/sentiment "a fine film"
dsa-keras client --url grpc://127.0.0.1:8500/sentiment "a fine film" --json
dsa-keras client --url grpc://127.0.0.1:8500/nli --pair "a man runs" "a man moves"
"""

Row = dict[str, str]
Answer = dict[str, Any]


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "client", help="ask a server", description=DESCRIPTION, epilog=example(_EXAMPLE)
    )
    parser.add_argument("sentences", nargs="*", metavar="SENTENCE", help="what to ask about")
    parser.add_argument(
        "--url",
        required=True,
        help="http://HOST:PORT/v1/models/NAME or grpc://HOST:PORT/NAME",
    )
    parser.add_argument(
        "--signature",
        default="serving_default",
        metavar="NAME",
        help="what to ask for: serving_default, embed or attention (default: serving_default)",
    )
    parser.add_argument(
        "--pair",
        action="store_true",
        help="take sentences two by two, a premise and its hypothesis",
    )
    parser.add_argument("--json", action="store_true", help="print whole answers, one JSON a line")
    parser.add_argument(
        "--timeout", type=float, default=30.0, metavar="SECONDS", help="patience (default: 30)"
    )
    parser.add_argument(
        "--batch-size", type=int, default=32, metavar="N", help="rows a request (default: 32)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints an answer for every sentence."""
    if args.batch_size < 1:
        raise ConfigError(f"{args.batch_size} rows is no request", where="--batch-size")
    if not 0 < args.timeout < float("inf"):
        raise ConfigError(f"{args.timeout} seconds is no patience", where="--timeout")
    client = connect(args.url, timeout=args.timeout)
    rows = list(_rows(args.sentences or _lines(sys.stdin), pairs=args.pair))
    for start in range(0, len(rows), args.batch_size):
        batch = rows[start : start + args.batch_size]
        for row, answer in zip(batch, client.ask(batch, args.signature), strict=True):
            print(_as_json(answer) if args.json else _as_text(row, answer))
    return 0


def connect(url: str, *, timeout: float = 30.0) -> RestClient | GrpcClient:
    """A client for an address; nothing is sent yet.

    Raises:
        ConfigError: if it is not an address of a model.
    """
    parts = urllib.parse.urlsplit(url)
    try:
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"not an address ({error})", where=url) from None
    if parts.scheme in ("http", "https") and host and "/v1/models/" in parts.path:
        return RestClient(url, timeout)
    if parts.scheme == "grpc" and host and port and parts.path.strip("/"):
        return GrpcClient(parts.netloc, parts.path.strip("/"), timeout)
    raise ConfigError(
        "not the address of a model",
        where=url,
        hint="Write http://HOST:8501/v1/models/NAME or grpc://HOST:8500/NAME",
    )


class RestClient:
    """Asks by REST, in the row format.

    Args:
        url: address of a model, `http://HOST:PORT/v1/models/NAME[/versions/N | /labels/L]`.
        timeout: seconds to wait for an answer.
    """

    def __init__(self, url: str, timeout: float = 30.0) -> None:
        self._url, self._timeout = url.rstrip("/").removesuffix(":predict"), timeout

    def ask(self, rows: list[Row], signature: str = "serving_default") -> list[Answer]:
        """Answers by output name, one for every row.

        Raises:
            RunError: if the server cannot be reached or refuses.
        """
        body = json.dumps({"signature_name": signature, "instances": rows}).encode()
        request = urllib.request.Request(
            f"{self._url}:predict", body, {"Content-Type": "application/json"}
        )
        answer = self._sent(request)
        answers = answer.get("predictions") if isinstance(answer, dict) else None
        if not isinstance(answers, list) or len(answers) != len(rows):
            raise RunError("answered with something else than predictions", where=self._url)
        # A signature with one output answers with bare values; only its metadata has the name.
        if all(isinstance(answer, dict) for answer in answers):
            return answers
        name = self._output_name(signature)
        return [{name: answer} for answer in answers]

    def _output_name(self, signature: str) -> str:
        found = self._sent(urllib.request.Request(f"{self._url}/metadata"))
        outputs = found["metadata"]["signature_def"]["signature_def"][signature]["outputs"]
        return next(iter(outputs))

    def _sent(self, request: urllib.request.Request) -> Any:
        try:
            with urllib.request.urlopen(request, timeout=self._timeout) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                raise RunError(_refusal(error), where=self._url) from None
        except (OSError, http.client.HTTPException) as error:
            raise _unreachable(self._url, getattr(error, "reason", error)) from None
        except ValueError:
            raise RunError("did not answer with JSON", where=self._url) from None


class GrpcClient:
    """Asks by gRPC.

    Args:
        address: HOST:PORT.
        path: NAME, NAME/versions/N or NAME/labels/LABEL.
        timeout: seconds to wait for an answer.
    """

    def __init__(self, address: str, path: str, timeout: float = 30.0) -> None:
        self._address, self._timeout = address, timeout
        self._name, *rest = path.split("/")
        self._version: dict[str, Any] = {}
        if len(rest) == 2 and rest[0] == "labels":
            self._version = {"version_label": rest[1]}
        elif len(rest) == 2 and rest[0] == "versions" and rest[1].isdecimal():
            self._version = {"version": {"value": int(rest[1])}}
        elif rest:
            raise ConfigError(
                "not a version", where="/".join(rest), hint="Write /versions/2 or /labels/stable"
            )

    def ask(self, rows: list[Row], signature: str = "serving_default") -> list[Answer]:
        """Answers by output name, one for every row.

        Raises:
            RunError: if the server cannot be reached or refuses.
        """
        require_extra("export", "grpc")
        import grpc

        from dsa_keras.export.messages import PREDICT, outputs_of, request_of

        where = f"grpc://{self._address}/{self._name}"
        inputs = {name: [row[name] for row in rows] for name in rows[0]}
        request = request_of({"name": self._name, **self._version}, signature, inputs)
        with grpc.insecure_channel(
            self._address, [("grpc.max_receive_message_length", -1)]
        ) as channel:
            predict = channel.unary_unary(PREDICT)
            try:
                response = predict(request, timeout=self._timeout)
            except grpc.RpcError as error:
                if error.code() == grpc.StatusCode.UNAVAILABLE:
                    raise _unreachable(where, error.details()) from None
                reason = f"{error.code().name}: {error.details()}"
                raise RunError(f"the server refused ({reason})", where=where) from None
        columns = outputs_of(response)
        return [{name: columns[name][row] for name in sorted(columns)} for row in range(len(rows))]


def _rows(texts: Any, *, pairs: bool) -> Iterator[Row]:
    """Sentences as rows; a tab or `pairs` makes a premise and a hypothesis."""
    if pairs:
        texts = list(texts)
        if len(texts) % 2:
            raise DataError(
                f"{len(texts)} sentences do not make pairs",
                hint="Give a hypothesis for each premise",
            )
        for premise, hypothesis in zip(texts[::2], texts[1::2], strict=True):
            yield {"premise": _text(premise), "hypothesis": _text(hypothesis)}
        return
    for text in texts:
        premise, tab, hypothesis = _text(text).partition("\t")
        yield {"premise": premise, "hypothesis": hypothesis} if tab else {"text": premise}


def _text(text: str) -> str:
    """Arguments that were not UTF-8 arrive as lone surrogates, which no server can be sent."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


def _lines(stream: Any) -> list[str]:
    return [line.rstrip("\r\n") for line in stream]


def _as_json(answer: Answer) -> str:
    return json.dumps(answer, ensure_ascii=False)


def _as_text(row: Row, answer: Answer) -> str:
    """Label, its probability and the sentence; or the values of any other signature."""
    sentence = "\t".join(row.values())
    if {"label", "probabilities", "class_names"} <= answer.keys():
        best = answer["class_names"].index(answer["label"])
        return f"{answer['label']}\t{answer['probabilities'][best]:.4f}\t{sentence}"
    parts = [name.removesuffix("tokens") for name in answer if name.endswith("tokens")]
    if parts:
        return "\t".join(_attended(answer, part) for part in sorted(parts, reverse=True))
    values = " ".join(_short(value) for value in answer.values())
    return f"{values}\t{sentence}"


def _attended(answer: Answer, part: str) -> str:
    """Words with their weights in the last iteration, averaged over the attentions."""
    last = answer[f"{part}weights"][-1]
    means = [sum(column) / len(last) for column in zip(*last, strict=True)]
    words = zip(answer[f"{part}tokens"], means, strict=True)
    length = answer[f"{part}lengths"]
    return " ".join(f"{word}:{weight:.3f}" for word, weight in list(words)[:length])


def _short(value: Any) -> str:
    if isinstance(value, list):
        return "[" + " ".join(_short(item) for item in value) + "]"
    # Adding 0 makes -0 a plain 0.
    return f"{value + 0.0:.6g}" if isinstance(value, float) else str(value)


def _refusal(error: urllib.error.HTTPError) -> str:
    try:
        reason = json.load(error)["error"]
    except (ValueError, KeyError, TypeError, OSError):
        reason = error.reason
    return f"the server refused ({error.code}: {reason})"


def _unreachable(where: str, reason: object) -> RunError:
    text = getattr(reason, "strerror", None) or str(reason)
    return RunError(
        f"cannot be reached ({text.partition(chr(10))[0]})",
        where=where,
        hint="Is the server running? Start one with dsa-keras serve",
    )
