"""What the registry knows of a data set: its reader, its recipe, its options."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dsa_keras import recipes
from dsa_keras.datasets.dataset import Origin
from dsa_keras.errors import ConfigError, nearest

if TYPE_CHECKING:
    from dsa_keras.config import Recipe
    from dsa_keras.datasets.dataset import Dataset
    from dsa_keras.datasets.option import Option
    from dsa_keras.encoders import Encoder


@dataclass(frozen=True)
class Entry:
    """A data set that can be asked for by name.

    Attributes:
        name: of the data set.
        about: what it is, in a few words.
        read: reads it. It takes the folder of the data, if it reads files, and the options by name;
            every option has a default.
        recipe: how models are trained on it. It takes the encoder and the options.
        options: of the reader.
        title: of its options in the help, if they have a part of their own.
        vectors: whether word vectors are wanted.
        without_vectors: changes the recipe where they are wanted and there are none: words get
            random ones, which are trained.
        reads_files: whether the reader takes a folder. For generated data, none is needed.
    """

    name: str
    about: str
    read: Callable[..., Dataset]
    recipe: Callable[[Encoder, Mapping[str, Any]], Recipe]
    options: tuple[Option, ...] = ()
    title: str | None = None
    vectors: bool = True
    without_vectors: Callable[[Recipe], Recipe] = recipes.without_vectors
    reads_files: bool = True

    def load(self, data_dir: str | os.PathLike[str] | None, options: Mapping[str, Any]) -> Dataset:
        """Reads the data set, which then knows where it came from.

        Args:
            data_dir: the folder of the data; of no use for one that reads no files.
            options: of the reader, by name.

        Raises:
            ConfigError: if an option is not known.
            DataError: if the data is missing or bad.
        """
        checked = self.checked(options)
        folder = None if data_dir is None else os.fspath(data_dir)
        dataset = self.read(folder, **checked) if self.reads_files else self.read(**checked)
        return dataset.loaded_from(self.name, Origin(folder, checked))

    def checked(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options as plain values, each of which the reader must know.

        Raises:
            ConfigError: if it does not know one.
        """
        known = [option.name for option in self.options]
        for name in options:
            if name not in known:
                raise ConfigError(
                    f"unknown option of {self.name}: {name!r}",
                    hint=nearest(name, known) if known else "It takes none",
                )
        # They are kept in a run's config.json.
        return {
            name: os.fspath(value) if isinstance(value, os.PathLike) else value
            for name, value in options.items()
        }

    def words(self, options: Mapping[str, Any]) -> list[str]:
        """The options as they stand on a command line."""
        by_name = {option.name: option for option in self.options}
        values = self.checked(options).items()
        return [word for name, value in values for word in by_name[name].words(value)]
