"""`python -m export saved-model`: a version folder for TF Serving, whole or not at all.

The version is written under a name that starts with a dot, audited, given its warm-up requests and
manifest, and then renamed to its number. TF Serving loads a folder as soon as its name is a number,
so there must never be half of one.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dsa_keras.commands.cli import example, load_tensorflow
from dsa_keras.data import MAX_WORDS, Vocabulary, load_vectors
from dsa_keras.data.dataset import Text
from dsa_keras.errors import ConfigError, RunError
from dsa_keras.files import folder_written_aside

if TYPE_CHECKING:
    from export.graph import Servable
    from export.quantization import Change
    from export.source import Source


@dataclass(frozen=True)
class Exported:
    """What was written.

    Attributes:
        path: the folder of the version.
        operations: the operations of its graph.
        size: bytes on the disk.
        words: of the vocabulary that is served.
        change: what the precision of the word vectors changed, if it is not float32.
        report: what was found of the words that were added, if any were.
    """

    path: Path
    operations: frozenset[str]
    size: int
    words: int
    change: Change | None
    report: str | None


def export_saved_model(
    run_dir: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    version: int | None = None,
    vocabulary: str | os.PathLike[str] | None = None,
    vectors: Sequence[str | os.PathLike[str]] = (),
    precision: str = "float32",
    data_dir: str | os.PathLike[str] | None = None,
) -> Exported:
    """Writes `out/version/`.

    Args:
        run_dir: the run folder.
        out: the model's folder; its name is the name of the model.
        version: a number that is not taken; None takes the next one.
        vocabulary: a vocabulary file with words to serve besides those trained on.
        vectors: files of word vectors, in which they are found.
        precision: of the stored word vectors: `float32`, `float16` or `int8`.
        data_dir: folder of the data, if it moved; its dev split measures what the precision costs.

    Raises:
        DsaError: if the run, the version or the words cannot be used as they are.
    """
    out = Path(out)
    path = _version_folder(out, version)
    from export.source import Source

    source = Source.load(run_dir)
    words, matrix, report = _words(source, vocabulary, vectors)

    import tensorflow as tf

    from export.audit import operations
    from export.graph import Network, Servable
    from export.manifest import write_manifest
    from export.warmup import write_warmup

    # The table is named after the file in the graph, and tables of one name in one process are one:
    # each export has a file name of its own.
    with tempfile.TemporaryDirectory() as scratch:
        asset = Path(scratch) / "vocabulary.txt"
        words.save(asset)
        network = Network(source.classifier, matrix, precision)
        config = source.config
        servable = Servable(network, asset, config.training.tokenizer, config.class_names)
        change = None
        if precision != "float32":
            change = _measure(source, servable, data_dir)
        try:
            with folder_written_aside(path) as aside:
                tf.saved_model.save(servable, str(aside), signatures=servable.endpoints)
                found = operations(aside)
                texts = {
                    name: [spec.name for spec in tf.nest.flatten(one.structured_input_signature)]
                    for name, one in servable.endpoints.items()
                    if name != "tokens"
                }
                write_warmup(aside, out.name, texts, words)
                write_manifest(
                    aside,
                    config,
                    source.best_metrics(),
                    name=out.name,
                    version=int(path.name),
                    precision=precision,
                    change=None if change is None else vars(change),
                    vocabulary_size=len(words),
                    max_words=MAX_WORDS,
                )
        except FileExistsError:
            raise _taken(path) from None
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return Exported(path, frozenset(found), size, len(words), change, report)


def _version_folder(out: Path, version: int | None) -> Path:
    if out.exists() and not out.is_dir():
        raise ConfigError("is not a folder", where=out, hint="Give --out models/NAME")
    if version is None:
        numbers = [int(one.name) for one in out.glob("[0-9]*") if one.name.isdecimal()]
        return out / str(max(numbers, default=0) + 1)
    if version < 1:
        raise ConfigError(f"version is {version}", where="--version", hint="Give a number from 1")
    path = out / str(version)
    if path.exists():
        raise _taken(path)
    return path


def _taken(path: Path) -> RunError:
    return RunError(
        "the version exists", where=path, hint="Versions are never overwritten: leave out --version"
    )


def _words(
    source: Source,
    vocabulary: str | os.PathLike[str] | None,
    vectors: Sequence[str | os.PathLike[str]],
) -> tuple[Vocabulary, np.ndarray, str | None]:
    """The words to serve, their vectors, and what to say about those that were added."""
    if vocabulary is None and not vectors:
        return source.vocabulary, source.vectors, None
    if vocabulary is None or not vectors:
        raise ConfigError(
            "words that are added need both a vocabulary and vectors",
            hint="Give --vocabulary FILE and --vectors FILE together",
        )
    config = source.config
    if config.model.train_embeddings or not config.vectors.get("files"):
        kind = "trained" if config.model.train_embeddings else "random"
        raise ConfigError(
            f"the run has {kind} word vectors, which do not go together with those of a file",
            where="--vectors",
            hint="Words can be added to a run that was trained on fixed vectors from files",
        )
    words = source.vocabulary.extended(Vocabulary.load(vocabulary))
    added = words[len(source.vocabulary) :]
    if not added:
        return words, source.vectors, "no word is new"
    new = load_vectors(
        vectors,
        added,
        dimension=config.model.embedding_dim,
        oov_range=config.training.oov_range,
        seed=config.training.seed,
    )
    return words, np.concatenate([source.vectors, new.matrix]), new.report


def _measure(source: Source, servable: Servable, data_dir: str | os.PathLike[str] | None) -> Change:
    """What the stored precision changes on the dev split."""
    from export.quantization import Change

    dev = source.dev(data_dir)
    before, after = source.probabilities(dev.texts), _probabilities(source, servable, dev.texts)
    return Change.measured(before, after, dev.labels)


def _probabilities(source: Source, servable: Servable, texts: Sequence[Text]) -> np.ndarray:
    import tensorflow as tf

    from export.source import parts_of

    answers = []
    for start in range(0, len(texts), 256):
        parts = parts_of(texts[start : start + 256], source.is_pair)
        inputs: dict[str, Any] = {name: tf.constant(part) for name, part in parts.items()}
        answers.append(servable.endpoints["serving_default"](**inputs)["probabilities"].numpy())
    return np.concatenate(answers)


def add_parser(subparsers: Any) -> None:
    """Adds the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "saved-model",
        help="a SavedModel on raw text for TF Serving",
        description="Writes OUT/N/, a SavedModel with signatures on raw text, whole or not at all.",
        epilog=example("python -m export saved-model runs/demo --out models/demo"),
    )
    parser.add_argument("run_dir", type=Path, metavar="RUN", help="a run folder")
    parser.add_argument(
        "--out", required=True, type=Path, metavar="DIR", help="the model's folder, models/NAME"
    )
    parser.add_argument("--version", type=int, metavar="N", help="default: the next free number")
    parser.add_argument(
        "--vocabulary",
        type=Path,
        metavar="FILE",
        help="serve these words too; a vocabulary file, as in a run folder",
    )
    parser.add_argument(
        "--vectors",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="word vectors of the words that --vocabulary adds",
    )
    parser.add_argument(
        "--precision",
        choices=("float32", "float16", "int8"),
        default="float32",
        help="of the stored word vectors; what it costs is measured on the dev split and printed",
    )
    parser.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="where the dev split is, if the data moved"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    _version_folder(args.out, args.version)
    load_tensorflow(args.run_dir)
    exported = export_saved_model(
        args.run_dir,
        args.out,
        version=args.version,
        vocabulary=args.vocabulary,
        vectors=args.vectors,
        precision=args.precision,
        data_dir=args.data_dir,
    )
    if exported.report:
        print(exported.report)
    print(
        f"{exported.path}: {exported.size / 1e6:,.1f} MB, {exported.words:,} words, "
        f"{len(exported.operations)} kinds of stock operations"
    )
    if exported.change is not None:
        print(f"{args.precision} word vectors: {exported.change}")
    return 0
