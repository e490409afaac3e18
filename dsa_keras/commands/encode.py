"""`encode`: sentences of any source to `.npy`, JSON lines or Parquet, in bounded memory."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from dsa_keras.command_line import example, load_tensorflow
from dsa_keras.commands.answers import Merged, ParquetRows
from dsa_keras.commands.streams import refuse_existing
from dsa_keras.commands.texts import Chunk, add_file_options, texts_of
from dsa_keras.data.parquet_files import SUFFIX, require_pyarrow, vector_column
from dsa_keras.errors import ConfigError
from dsa_keras.files import written_aside
from dsa_keras.inputs import SENTENCE
from dsa_keras.options import add_run
from dsa_keras.progress import progress_bar
from dsa_keras.runs import Run

if TYPE_CHECKING:
    import numpy as np

_EXAMPLE = """
dsa-keras encode runs/sst2 --file reviews.txt --output vectors.npy --normalize
dsa-keras encode runs/sst2 --file reviews.parquet --text-column review --output vectors.parquet
dsa-keras encode runs/sst2 "a gripping , funny film"
cat reviews.txt | dsa-keras encode runs/sst2 --output vectors.npy
"""


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "encode",
        help="turn sentences into vectors",
        description="Takes sentences from the command line, from a file, or from standard input,\n"
        "one a line, and writes a vector for each: row n of the .npy array, or line n of the\n"
        ".jsonl file, belongs to sentence n. Without --output it prints JSON lines. Memory does\n"
        "not grow with the file.",
        epilog=example(_EXAMPLE),
    )
    parser.set_defaults(run=run)
    add_run(parser)
    parser.add_argument("sentences", metavar="SENTENCE", nargs="*", help="a sentence to encode")
    add_file_options(parser)
    parser.add_argument(
        "--output",
        metavar="FILE",
        type=Path,
        help="ends in .npy, .jsonl or .parquet; default: JSON lines on standard output",
    )
    parser.add_argument("--normalize", action="store_true", help="scale vectors to length 1")
    parser.add_argument("--force", action="store_true", help="overwrite the output")
    parser.add_argument("--batch-size", type=int, default=256, metavar="N", help="default: 256")


def run(args: argparse.Namespace) -> None:
    """Encodes chunk by chunk."""
    if args.output is not None and args.output.suffix not in _SUFFIXES:
        raise ConfigError(
            f"the output must end in .npy, .jsonl or .parquet. Received: {args.output.name!r}",
            where="--output",
        )
    if args.output is not None and args.output.suffix == SUFFIX:
        require_pyarrow()
    refuse_existing(args.output, args.force)
    texts = texts_of(args, Run(args.run_dir).config(), SENTENCE, args.sentences)
    texts.check()
    load_tensorflow(args.run_dir)
    import dsa_keras

    model = dsa_keras.load(args.run_dir)
    texts.greet()
    count = 0
    with (
        _VectorFile.open(args.output, model.dimension) as vectors,
        progress_bar(None, "encoding", unit=" sentences", show=not texts.typed) as bar,
    ):
        for chunk in texts.chunks():
            encoded = model.encode(
                chunk.sentences, args.batch_size, normalize_embeddings=args.normalize
            )
            vectors.write(chunk, encoded)
            count += len(chunk)
            bar.update(len(chunk))
    if args.output is not None:
        print(f"{count:,} vectors of {model.dimension} numbers in {args.output}")


class _VectorFile:
    """JSON lines: an object per sentence, with its text or its row, and its vector."""

    def __init__(self, file: IO[bytes], dimension: int) -> None:
        self.file, self.dimension, self.count = file, dimension, 0
        self._merged = Merged(SENTENCE)

    @staticmethod
    @contextlib.contextmanager
    def open(path: Path | None, dimension: int) -> Iterator[_VectorFile]:
        """The writer for a file, which appears when it is complete, or for standard output."""
        if path is None:
            yield _PrintedVectors(dimension)
            return
        with written_aside(path) as aside, aside.open("wb") as file:
            writer = _SUFFIXES[path.suffix](file, dimension)
            try:
                yield writer
            finally:
                # In any case, since it may hold the file open.
                writer.finish()

    def write(self, chunk: Chunk, vectors: np.ndarray) -> None:
        """Appends a chunk."""
        # The shortest digits that give back the same float32.
        fields = ({"vector": [float(str(number)) for number in vector]} for vector in vectors)
        for row in self._merged(chunk, fields):
            self._write_line(json.dumps(row, ensure_ascii=False, default=str))

    def _write_line(self, line: str) -> None:
        self.file.write(line.encode() + b"\n")

    def finish(self) -> None:
        """Writes what is known only at the end."""


class _PrintedVectors(_VectorFile):
    """The same on standard output."""

    def __init__(self, dimension: int) -> None:
        super().__init__(io.BytesIO(), dimension)

    def _write_line(self, line: str) -> None:
        print(line, flush=True)


class _NpyFile(_VectorFile):
    """One float32 array. Its header holds the number of rows, so it is written again at the end.

    NumPy leaves room in a header for the first axis to grow: both headers have the same length.
    """

    def __init__(self, file: IO[bytes], dimension: int) -> None:
        super().__init__(file, dimension)
        self._write_header()

    def write(self, chunk: Chunk, vectors: np.ndarray) -> None:
        """Appends a chunk."""
        self.file.write(vectors.astype("<f4", copy=False).tobytes())
        self.count += len(vectors)

    def finish(self) -> None:
        """Puts the number of rows into the header."""
        self.file.seek(0)
        self._write_header()

    def _write_header(self) -> None:
        from numpy.lib import format as npy

        shape = (self.count, self.dimension)
        npy.write_array_header_1_0(
            self.file, {"descr": "<f4", "fortran_order": False, "shape": shape}
        )


class _ParquetFile(_VectorFile):
    """The columns of the table, or the text, and a column of lists of float32 of one size."""

    def __init__(self, file: IO[bytes], dimension: int) -> None:
        super().__init__(file, dimension)
        self._rows = ParquetRows(file, SENTENCE)

    def write(self, chunk: Chunk, vectors: np.ndarray) -> None:
        """Appends a chunk."""
        self._rows.write(chunk, {"vector": vector_column(vectors)})

    def finish(self) -> None:
        """Writes the end of the file, where its columns are described."""
        self._rows.output.close()


_SUFFIXES = {".npy": _NpyFile, ".jsonl": _VectorFile, SUFFIX: _ParquetFile}
