"""`dsa-keras export verify`: the same sentences every way, and the largest differences.

Keras on the run, the SavedModel by `tf.saved_model.load`, by the C++ loader without Python's
TensorFlow and by `serve`, and ONNX by its own tokeniser. The exit code is 1 if two of them differ
at all in a string, or in a number by more than 1e-5 (of the largest number, where an output has
numbers above 1).
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dsa_keras.command_line import example, load_tensorflow, require_extra
from dsa_keras.data import Vocabulary
from dsa_keras.data.text_files import TextFile
from dsa_keras.data.word_lookup import WordLookup
from dsa_keras.errors import ConfigError, DataError, RunError
from dsa_keras.export.reference import Answers, difference
from dsa_keras.export.versions import version_folders, version_manifest
from dsa_keras.inputs import Inputs, Text
from dsa_keras.options import add_import_option
from dsa_keras.runs import RunConfig

if TYPE_CHECKING:
    from dsa_keras.export.ways import Requests

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
    import dsa_keras
    from dsa_keras.export import reference, ways
    from dsa_keras.export.audit import operations

    config, precision = _exported(folder)
    operations(folder)
    inputs = config.model.inputs
    words = Vocabulary.load(folder / "assets" / "vocabulary.txt")
    texts = read_texts(Path(file), inputs) if file else example_texts(words, inputs)
    chunks = [texts[start : start + _CHUNK] for start in range(0, len(texts), _CHUNK)]
    word_ids = WordLookup(config.training.tokenizer, words, config.training.lowercase)
    requests = [_requests(chunk, folder, inputs, word_ids) for chunk in chunks]
    kind = (precision, len(words))
    found = []
    if run_dir is not None:
        trained = dsa_keras.load(run_dir)
        every = [reference.answers(trained, chunk) for chunk in chunks]
        found.append(Way("keras", ("float32", len(trained.vocabulary)), every))
    found.append(Way("tensorflow", kind, ways.by_tensorflow(folder, requests)))
    found.append(Way("c++", kind, ways.by_cpp(folder, requests)))
    if serve:
        found.append(Way("serve", kind, ways.by_serve(folder, requests)))
    if onnx is not None:
        found.append(_onnx_way(Path(onnx), config, chunks))
    return Report(len(texts), _differences(found))


def _exported(folder: Path) -> tuple[RunConfig, str]:
    """The run that a version was made from, and the precision of its word vectors.

    Raises:
        RunError: if a file of the version is missing, added or changed.
    """
    manifest = version_manifest(folder)
    manifest.check_all()
    facts = manifest.facts
    try:
        return RunConfig.from_dict(facts["run"]), str(facts["precision"])
    except KeyError as error:
        problem, hint = f"does not say {error}", None
    except ConfigError as error:
        problem, hint = f"the run it tells of cannot be: {error.problem}", error.hint
    raise RunError(
        problem,
        where=manifest.path,
        hint=hint or "Give a version that dsa-keras export saved-model wrote",
    )


def _checked(model: Path, onnx: str | Path | None) -> Path:
    """The folder of the version; what is not there is told before anything slow is done."""
    if onnx is not None:
        _onnx_files(Path(onnx))
    return version_folder(model)


def version_folder(model: Path) -> Path:
    """The folder of a version: the one given, or the newest of a model."""
    if (model / "saved_model.pb").exists():
        return model.absolute()
    folders = version_folders(model)
    if not folders:
        raise RunError(
            "has no version",
            where=model,
            hint="Give models/NAME or models/NAME/N, made by dsa-keras export saved-model",
        )
    return folders[max(folders)].absolute()


def example_texts(words: Sequence[str], inputs: Inputs) -> list[Text]:
    """Sentences of all kinds: odd ones, and known words in many lengths."""
    known = list(words[2:]) or ["word"]
    lengths = (1, 2, 3, 7, 20, 300)
    sentences = [
        *_ODD,
        *(" ".join(known[(7 * n + i) % len(known)] for i in range(n)) for n in lengths),
    ]
    # The sentences of a text are of different kinds and lengths.
    others = [sentences[5 * n :] + sentences[: 5 * n] for n in range(inputs.count)]
    return [inputs.text(parts) for parts in zip(*others, strict=True)]


def read_texts(file: Path, inputs: Inputs) -> list[Text]:
    """Reads a text from each line, as `predict --file` does.

    Raises:
        DataError: if the file cannot be read, or a line of it is no text.
    """
    texts = []
    for number, line in TextFile(file).lines():
        try:
            line.encode()
        except UnicodeEncodeError:
            raise DataError(
                "the line is not UTF-8", where=file, line=number, hint="Save it as UTF-8"
            ) from None
        texts.append(inputs.from_line(line.rstrip("\r\n"), number, str(file)))
    return texts


def _requests(
    texts: Sequence[Text], folder: Path, inputs: Inputs, word_ids: WordLookup
) -> Requests:
    """The inputs of every signature of the model."""
    from dsa_keras.export.audit import read_saved_model

    columns = inputs.columns(texts)
    by_key: dict[str, Any] = {"text": columns[inputs.signature[0]], **columns}
    by_key |= {
        name: word_ids(sentences).padded()
        for name, sentences in zip(inputs.ids, columns.values(), strict=True)
    }
    return {
        name: {key: by_key[key] for key in definition.inputs}
        for name, definition in sorted(read_saved_model(folder).signature_def.items())
        if not name.startswith("__")
    }


def _onnx_files(path: Path) -> list[Path]:
    """The model and the files beside it, which must be there."""
    files = [path, path.with_suffix(".json"), path.with_suffix(".vocabulary.txt")]
    for one in files:
        if not one.is_file():
            raise ConfigError(
                "no such file", where=one, hint="Give a file that dsa-keras export onnx wrote"
            )
    return files


def _onnx_way(path: Path, config: RunConfig, chunks: Sequence[Sequence[Text]]) -> Way:
    from dsa_keras.export.onnx_runtime import OnnxModel
    from dsa_keras.export.ways import by_onnx

    try:
        model = OnnxModel(path)
    except ValueError as error:
        raise RunError(str(error)) from None
    if model.answers != json.loads(json.dumps(config.model.objective.for_runner())):
        raise RunError(
            "the ONNX file does not say what the SavedModel says, such as the same classes",
            where=path,
            hint="Export both from one run",
        )
    kind = (f"onnx {model.quantized}" if model.quantized else "float32", model.num_words)
    return Way("onnx", kind, by_onnx(model, config.model, chunks))


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
    if one.dtype == object or other.dtype == object:
        return 0.0 if np.array_equal(one, other) else math.inf
    return difference(one, other)


def add_parser(subparsers: Any) -> None:
    """Adds the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "verify",
        help="prove that all exported forms answer alike",
        description="Sends the same sentences through Keras, the SavedModel (tf.saved_model.load, "
        "the C++ loader, serve) and ONNX and prints the largest differences.\n"
        "The exit code is 1 if one is over 1e-5.",
        epilog=example("dsa-keras export verify models/demo --run runs/demo --onnx onnx/demo.onnx"),
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
    add_import_option(parser)
    parser.add_argument("--no-serve", action="store_true", help="do not start the local server")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    require_extra("export", "tensorflow_serving", "aiohttp")
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
