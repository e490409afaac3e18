"""Parquet files, read and written batch by batch; they need pyarrow, the extra `parquet`."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from dsa_keras.data.archives import check_file
from dsa_keras.errors import ConfigError, DataError

SUFFIX = ".parquet"
"""How their names end."""


def is_parquet(path: Path) -> bool:
    """Whether a file is one by its name."""
    return path.suffix.lower() == SUFFIX


def require_pyarrow() -> None:
    """Says what to install if pyarrow is missing.

    Raises:
        ConfigError: if it cannot be found.
    """
    if importlib.util.find_spec("pyarrow") is None:
        raise ConfigError(
            "pyarrow is not installed, which Parquet files need",
            hint="Install it: pip install 'dsa-keras[parquet]'",
        )


def parquet_columns(path: Path) -> list[str]:
    """The names of the columns.

    Raises:
        ConfigError: if pyarrow is missing.
        DataError: if the file cannot be read.
    """
    with _opened(path) as file:
        return list(file.schema_arrow.names)


def read_batches(path: Path, size: int, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """The rows as Arrow record batches; what is in memory does not grow with the file.

    Args:
        path: the file.
        size: rows in a batch, at most.
        columns: what to read; None for all.

    Raises:
        ConfigError: if pyarrow is missing.
        DataError: if the file cannot be read.
    """
    with _opened(path) as file:
        yield from file.iter_batches(size, columns=None if columns is None else list(columns))


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    require_pyarrow()
    import pyarrow
    from pyarrow import parquet

    check_file(path)
    try:
        # With `pre_buffer` the whole file would be in memory.
        with parquet.ParquetFile(path, pre_buffer=False) as file:
            yield file
    except (pyarrow.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())
        raise DataError(
            f"cannot be read as Parquet ({reason:.200})",
            where=path,
            hint="Check that the file is complete",
        ) from None


class ParquetOutput:
    """A Parquet file that grows by a row group for each batch; the first one makes its columns.

    Args:
        file: where to write.
    """

    def __init__(self, file: IO[bytes]) -> None:
        require_pyarrow()
        self.file = file
        self._schema: Any = None
        self._writer: Any = None

    def write(self, batch: Any, new: Mapping[str, Any]) -> None:
        """Appends rows.

        Args:
            batch: their columns, an Arrow record batch.
            new: further columns by name, Arrow arrays.
        """
        import pyarrow
        from pyarrow import parquet

        if self._schema is None:
            schema = batch.schema
            for name, column in new.items():
                schema = schema.append(pyarrow.field(name, column.type))
            self._schema = schema
            self._writer = parquet.ParquetWriter(self.file, schema)
        columns = [*batch.columns, *new.values()]
        self._writer.write_batch(pyarrow.RecordBatch.from_arrays(columns, schema=self._schema))

    def close(self) -> None:
        """Writes what is known only at the end."""
        if self._writer is not None:
            self._writer.close()


class Batches:
    """Records to record batches; the first ones decide the types of the columns.

    A column without a value in them holds strings.
    """

    def __init__(self) -> None:
        self._schema: Any = None

    def __call__(self, records: Sequence[Mapping[str, Any]]) -> Any:
        """The records as one batch.

        Raises:
            ValueError: with the problem in words, if they do not fit into the columns.
        """
        import pyarrow

        names = list(records[0]) if self._schema is None else self._schema.names
        for record in records:
            if unknown := [name for name in record if name not in names]:
                raise ValueError(f"{unknown[0]!r} is no column of the first row")
        columns = []
        for number, name in enumerate(names):
            kind = None if self._schema is None else self._schema.types[number]
            try:
                column = pyarrow.array([record.get(name) for record in records], kind)
            except pyarrow.ArrowException as error:
                raise ValueError(f"the column {name!r} has values of two kinds ({error})") from None
            columns.append(
                column.cast(pyarrow.string()) if column.type == pyarrow.null() else column
            )
        batch = pyarrow.RecordBatch.from_arrays(columns, names=names)
        self._schema = batch.schema
        return batch


def vector_column(vectors: Any) -> Any:
    """Vectors as an Arrow array of lists of one size, of float32."""
    import pyarrow

    flat = pyarrow.array(vectors.astype("float32", copy=False).reshape(-1))
    return pyarrow.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
