"""`python -m export verify`: the same sentences every way, and the largest differences.

Keras on the run, the SavedModel by `tf.saved_model.load`, by the C++ loader without Python's
TensorFlow and by `serve`, and ONNX by its own tokeniser. The exit code is 1 if two of them differ
by more than 1e-5 in a number, or at all in a string.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dsa_keras.commands.cli import example, load_tensorflow
from dsa_keras.data.dataset import Text
from dsa_keras.errors import ConfigError, DataError, RunError

if TYPE_CHECKING:
    from dsa_keras.data import Vocabulary
    from dsa_keras.training.run import RunConfig
    from export.source import Answers
    from export.ways import Requests

TOLERANCE = 1e-5
_CHUNK = 32
_ODD = (
    "",
    "   ",
    "!",
    "<pad> <unk> <pad>",
    "It's “odd” — isn't it… naïve, 東京 👩‍👩‍👧?",
    "\ufeffa\u200bb\x00c\tA\u0301 İSTANBUL ΟΔΟΣ",
)


@dataclass
class Way:
    """One way to the answers.

    Attributes:
        name: of the way.
        kind: precision and number of words; ways of different kinds need not agree.
        answers: for each chunk of texts.
    """

    name: str
    kind: tuple[str, int]
    answers: list[Answers]


@dataclass(frozen=True)
class Difference:
    """The largest difference of two ways in one signature.

    Attributes:
        ways: the names of the two.
        signature: which one.
        largest: of its outputs; infinite if strings or shapes differ.
        judged: whether they have to agree.
    """

    ways: tuple[str, str]
    signature: str
    largest: float
    judged: bool

    @property
    def holds(self) -> bool:
        """Whether the difference may be."""
        return self.largest <= TOLERANCE or not self.judged


@dataclass(frozen=True)
class Report:
    """What `verify` found."""

    texts: int
    differences: list[Difference] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether all that have to agree do."""
        return all(one.holds for one in self.differences)

    def table(self) -> str:
        """A row for each pair of ways, a column for each signature."""
        signatures = list(dict.fromkeys(one.signature for one in self.differences))
        cells: dict[tuple[str, str], dict[str, str]] = {}
        for one in self.differences:
            text = f"{one.largest:.1e}"
            text = f"({text})" if not one.judged else text if one.holds else f"{text} !"
            cells.setdefault(one.ways, {})[one.signature] = text
        names = {ways: f"{ways[0]} - {ways[1]}" for ways in cells}
        wide = max(len(name) for name in names.values())
        lines = [f"largest differences on {self.texts:,} texts, at most {TOLERANCE:.0e} allowed"]
        lines.append(" " * wide + "".join(f"  {name:>15}" for name in signatures))
        for ways, row in cells.items():
            values = "".join(f"  {row.get(name, '-'):>15}" for name in signatures)
            lines.append(f"{names[ways]:<{wide}}{values}")
        if any(not one.judged for one in self.differences):
            lines.append("(in brackets: another precision or vocabulary, so it is not judged)")
        return "\n".join(lines)


def verify(
    model: str | Path,
    *,
    run_dir: str | Path | None = None,
    onnx: str | Path | None = None,
    file: str | Path | None = None,
    serve: bool = True,
) -> Report:
    """Compares all ways to the answers of an exported model.

    Args:
        model: `models/NAME`, of which the newest version is taken, or `models/NAME/N`.
        run_dir: the run it was made from, for Keras.
        onnx: an ONNX file of the same run.
        file: sentences, one a line (pairs: two in a line, with a tab between them); without it, a
            dozen that are hard.
        serve: whether to ask the local server too.
    """
    folder = _checked(Path(model), onnx)
    from dsa_keras.data import Vocabulary
    from dsa_keras.training.run import RunConfig
    from export import ways
    from export.audit import operations
    from export.manifest import read_manifest

    manifest = read_manifest(folder)
    operations(folder)
    config = RunConfig.from_dict(manifest["run"])
    words = Vocabulary.load(folder / "assets" / "vocabulary.txt")
    texts = read_texts(Path(file), config.is_pair) if file else example_texts(words, config.is_pair)
    chunks = [texts[start : start + _CHUNK] for start in range(0, len(texts), _CHUNK)]
    requests = [_requests(chunk, folder, config, words) for chunk in chunks]
    kind = (manifest["precision"], len(words))
    found = []
    if run_dir is not None:
        from export.source import Source

        source = Source.load(run_dir)
        trained = ("float32", len(source.vocabulary))
        found.append(Way("keras", trained, [source.answers(chunk) for chunk in chunks]))
    found.append(Way("tensorflow", kind, ways.by_tensorflow(folder, requests)))
    found.append(Way("c++", kind, ways.by_cpp(folder, requests)))
    if serve:
        found.append(Way("serve", kind, ways.by_serve(folder, requests)))
    if onnx is not None:
        found.append(_onnx_way(Path(onnx), chunks))
    return Report(len(texts), _differences(found))


def _checked(model: Path, onnx: str | Path | None) -> Path:
    """The folder of the version; what is not there is told before anything slow is done."""
    if onnx is not None:
        _onnx_files(Path(onnx))
    return version_folder(model)


def version_folder(model: Path) -> Path:
    """The folder of a version: the one given, or the newest of a model."""
    if (model / "saved_model.pb").exists():
        return model.absolute()
    numbers = [one for one in model.glob("[0-9]*") if one.name.isdecimal()]
    if not numbers:
        raise RunError(
            "has no version",
            where=model,
            hint="Give models/NAME or models/NAME/N, made by python -m export saved-model",
        )
    return max(numbers, key=lambda one: int(one.name)).absolute()


def example_texts(words: Sequence[str], is_pair: bool) -> list[Text]:
    """Sentences of all kinds: odd ones, and known words in many lengths."""
    known = list(words[2:]) or ["word"]
    lengths = (1, 2, 3, 7, 20, 300)
    sentences = [
        *_ODD,
        *(" ".join(known[(7 * n + i) % len(known)] for i in range(n)) for n in lengths),
    ]
    if not is_pair:
        return list(sentences)
    return list(zip(sentences, sentences[5:] + sentences[:5], strict=True))


def read_texts(file: Path, is_pair: bool) -> list[Text]:
    """Reads a sentence or a pair from each line."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot be read ({error})", where=file, hint="Give UTF-8 text") from None
    if not lines:
        raise DataError("is empty", where=file, hint="Give one sentence a line")
    if not is_pair:
        return list(lines)
    pairs = []
    for number, line in enumerate(lines, start=1):
        parts = line.split("\t")
        if len(parts) != 2:
            raise DataError(
                "is not a pair", where=file, line=number, hint="Put a tab between two sentences"
            )
        pairs.append((parts[0], parts[1]))
    return list(pairs)


def _requests(
    texts: Sequence[Text], folder: Path, config: RunConfig, words: Vocabulary
) -> Requests:
    """The inputs of every signature of the model."""
    from dsa_keras.data import MAX_WORDS, tokenize
    from export.audit import read_saved_model
    from export.source import padded, parts_of

    parts = parts_of(texts, config.is_pair)
    first = next(iter(parts))
    requests: Requests = {}
    for name, definition in sorted(read_saved_model(folder).signature_def.items()):
        if name.startswith("__"):
            continue
        requests[name] = {}
        for key in definition.inputs:
            part = key.removesuffix("_ids") if config.is_pair else "text"
            sentences = parts[part if part in parts else first]
            value: Any = sentences
            if key.endswith("_ids"):
                rows = tokenize(sentences, config.training.tokenizer)
                value = padded([words.ids(row[:MAX_WORDS]) for row in rows])
            requests[name][key] = value
    return requests


def _onnx_files(path: Path) -> list[Path]:
    """The model and the files beside it, which must be there."""
    files = [path, path.with_suffix(".json"), path.with_suffix(".vocabulary.txt")]
    for one in files:
        if not one.is_file():
            raise ConfigError(
                "no such file", where=one, hint="Give a file that python -m export onnx wrote"
            )
    return files


def _onnx_way(path: Path, chunks: Sequence[Sequence[Text]]) -> Way:
    import json

    from export.onnx_runtime import OnnxModel
    from export.ways import by_onnx

    _, described, _ = _onnx_files(path)
    model = OnnxModel(path)
    settings = json.loads(described.read_text(encoding="utf-8"))
    kind = (
        f"onnx {settings['quantized']}" if settings["quantized"] else "float32",
        model.num_words,
    )
    return Way("onnx", kind, by_onnx(model, chunks))


def _differences(found: Sequence[Way]) -> list[Difference]:
    results = []
    for one, other in itertools.combinations(found, 2):
        signatures = [name for name in one.answers[0] if name in other.answers[0]]
        for name in signatures:
            pairs = zip(one.answers, other.answers, strict=True)
            largest = max(_largest(a[name], b[name]) for a, b in pairs)
            judged = one.kind == other.kind
            results.append(Difference((one.name, other.name), name, largest, judged))
    return results


def _largest(one: dict[str, Any], other: dict[str, Any]) -> float:
    if one.keys() != other.keys():
        return math.inf
    return max(_distance(np.asarray(one[key]), np.asarray(other[key])) for key in one)


def _distance(one: np.ndarray, other: np.ndarray) -> float:
    if one.shape != other.shape:
        return math.inf
    if one.dtype == object or other.dtype == object:
        return 0.0 if np.array_equal(one, other) else math.inf
    distance = np.abs(one.astype(np.float64) - other).max(initial=0)
    return math.inf if np.isnan(distance) else float(distance)


def add_parser(subparsers: Any) -> None:
    """Adds the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "verify",
        help="prove that all exported forms answer alike",
        description="Sends the same sentences through Keras, the SavedModel (tf.saved_model.load, "
        "the C++ loader, serve) and ONNX and prints the largest differences.\n"
        "The exit code is 1 if one is over 1e-5.",
        epilog=example("python -m export verify models/demo --run runs/demo --onnx onnx/demo.onnx"),
    )
    parser.add_argument("model", type=Path, metavar="MODEL", help="models/NAME or models/NAME/N")
    parser.add_argument(
        "--run", dest="run_dir", type=Path, metavar="RUN", help="the run, to ask Keras"
    )
    parser.add_argument("--onnx", type=Path, metavar="FILE", help="the run as ONNX")
    parser.add_argument(
        "--file",
        type=Path,
        metavar="FILE",
        help="sentences, one a line; of a pair, two with a tab between them",
    )
    parser.add_argument("--no-serve", action="store_true", help="do not start the local server")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    _checked(args.model, args.onnx)
    load_tensorflow(args.run_dir)
    report = verify(
        args.model,
        run_dir=args.run_dir,
        onnx=args.onnx,
        file=args.file,
        serve=not args.no_serve,
    )
    print(report.table())
    print("all agree" if report.holds else "they DIFFER: see the figures with !")
    return 0 if report.holds else 1
