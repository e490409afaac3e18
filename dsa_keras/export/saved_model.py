"""`dsa-keras export saved-model`: a version folder for TF Serving, whole or not at all.

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

from dsa_keras.command_line import example, load_tensorflow, require_extra
from dsa_keras.data import MAX_WORDS, Vocabulary, load_vectors
from dsa_keras.errors import ConfigError
from dsa_keras.export.arguments import add_data_dir
from dsa_keras.export.outputs import new_version, taken
from dsa_keras.export.versions import library_versions, new_manifest
from dsa_keras.files import folder_written_aside
from dsa_keras.inputs import Text
from dsa_keras.options import add_run
from dsa_keras.runs import Run

if TYPE_CHECKING:
    from dsa_keras.export.graph import Servable
    from dsa_keras.export.quantization import Change
    from dsa_keras.sentence_model import SentenceModel


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
    path = new_version(out, version)
    import tensorflow as tf

    import dsa_keras
    from dsa_keras.export.audit import operations
    from dsa_keras.export.graph import Servable, ServedNetwork
    from dsa_keras.export.warmup import write_warmup

    model = dsa_keras.load(run_dir)
    config, name = model.config, path.absolute().parent.name
    best = Run(run_dir).best(config)
    words, matrix, report = _words(model, vocabulary, vectors)

    # The table is named after the file in the graph, and tables of one name in one process are one:
    # each export has a file name of its own.
    with tempfile.TemporaryDirectory() as scratch:
        asset = Path(scratch) / "vocabulary.txt"
        words.save(asset)
        served = ServedNetwork(model.network, matrix, precision)
        servable = Servable(served, asset, model.tokenizer, model.text_encoder.lowercase)
        change = None if precision == "float32" else _measure(model, servable, data_dir)
        try:
            with folder_written_aside(path) as aside:
                tf.saved_model.save(servable, str(aside), signatures=servable.endpoints)
                found = operations(aside)
                texts = {
                    signature: [
                        spec.name for spec in tf.nest.flatten(one.structured_input_signature)
                    ]
                    for signature, one in servable.endpoints.items()
                    if signature != "tokens"
                }
                write_warmup(aside, name, texts, words)
                new_manifest(aside).write(
                    {
                        "name": name,
                        "version": int(path.name),
                        "precision": precision,
                        "change": None if change is None else vars(change),
                        "vocabulary_size": len(words),
                        "max_words": MAX_WORDS,
                        "metrics": best,
                        "versions": library_versions(),
                        "run": config.to_dict(),
                    }
                )
        except FileExistsError:
            raise taken(path) from None
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return Exported(path, frozenset(found), size, len(words), change, report)


def _words(
    model: SentenceModel,
    vocabulary: str | os.PathLike[str] | None,
    vectors: Sequence[str | os.PathLike[str]],
) -> tuple[Vocabulary, np.ndarray, str | None]:
    """The words to serve, their vectors, and what to say about those that were added."""
    if vocabulary is None and not vectors:
        return model.vocabulary, model.network.vectors, None
    if vocabulary is None or not vectors:
        raise ConfigError(
            "words that are added need both a vocabulary and vectors",
            hint="Give --vocabulary FILE and --vectors FILE together",
        )
    config = model.config
    if config.model.train_embeddings or not config.vector_files:
        kind = "trained" if config.model.train_embeddings else "random"
        raise ConfigError(
            f"the run has {kind} word vectors, which do not go together with those of a file",
            where="--vectors",
            hint="Words can be added to a run that was trained on fixed vectors from files",
        )
    words = model.vocabulary.extended(Vocabulary.load(vocabulary))
    added = words[len(model.vocabulary) :]
    if not added:
        return words, model.network.vectors, "no word is new"
    new = load_vectors(
        vectors,
        added,
        dimension=config.model.embedding_dim,
        oov_range=config.training.oov_range,
        seed=config.training.seed,
    )
    return words, np.concatenate([model.network.vectors, new.matrix]), new.report


def _measure(
    model: SentenceModel, servable: Servable, data_dir: str | os.PathLike[str] | None
) -> Change:
    """What the stored precision changes on the dev split."""
    from dsa_keras.export import reference
    from dsa_keras.export.quantization import Change

    dev = reference.dev_split(model.config, data_dir)
    before, after = reference.numbers(model, dev.texts), _numbers(model, servable, dev.texts)
    return Change.measured(model.objective, before, after, dev.targets)


def _numbers(model: SentenceModel, servable: Servable, texts: Sequence[Text]) -> np.ndarray:
    """What the model says as it is served."""
    import tensorflow as tf

    found = []
    for start in range(0, len(texts), 256):
        columns = model.inputs.columns(texts[start : start + 256])
        fed: dict[str, Any] = {name: tf.constant(part) for name, part in columns.items()}
        answer = servable.endpoints["serving_default"](**fed)
        found.append(answer[model.objective.output].numpy())
    return np.concatenate(found)


def add_parser(subparsers: Any) -> None:
    """Adds the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "saved-model",
        help="a SavedModel on raw text for TF Serving",
        description="Writes OUT/N/, a SavedModel with signatures on raw text, whole or not at all.",
        epilog=example("dsa-keras export saved-model runs/demo --out models/demo"),
    )
    add_run(parser)
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
    add_data_dir(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    require_extra("export", "tensorflow_serving")
    new_version(args.out, args.version)
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
