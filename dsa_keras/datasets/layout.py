"""Where the files of an official data set lie: as they were unpacked, or in their archive."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from dsa_keras.data.archives import list_members
from dsa_keras.data.text_files import TextFile
from dsa_keras.errors import DataError


@dataclass(frozen=True)
class Layout:
    """Where the files of an official data set may lie under a folder.

    Attributes:
        title: what to call the data set in messages.
        url: the official address of the archive.
        folders: folders under the data folder to look in, the likeliest first.
        files: per split, the file names to accept, the preferred first.
        complete: whether every split must be there; otherwise one is enough.
    """

    title: str
    url: str
    folders: tuple[str, ...]
    files: Mapping[str, tuple[str, ...]]
    complete: bool

    @property
    def archive(self) -> str:
        """The file name of the official archive."""
        return self.url.rpartition("/")[2]

    def find(self, data_dir: str | os.PathLike[str] | None) -> dict[str, TextFile]:
        """Gives the file of each split.

        Args:
            data_dir: a folder that holds the files or the official archive, at its top or in one of
                `folders`, or the path of the archive itself.

        Raises:
            DataError: if nothing is there, or not every split that is needed; it names the places
                looked at.
        """
        if data_dir is None:
            raise DataError(f"{self.title} needs a data_dir", hint=self.instructions())
        root = Path(data_dir).expanduser()
        place = self._place(root)
        if place is None:
            places = ", ".join(str(root / folder) for folder in self.folders)
            raise DataError(f"{self.title} not found; looked in {places}", hint=self.instructions())
        found = self._in_archive(place) if place.is_file() else self._in_folder(place)
        missing = [names[0] for split, names in self.files.items() if split not in found]
        if missing and (self.complete or not found):
            raise DataError(
                f"{self.title}: no {', '.join(missing)} there",
                where=place,
                hint=self.instructions(),
            )
        return found

    def is_in(self, data_dir: str | os.PathLike[str]) -> bool:
        """Whether some of the data is there, sound or not."""
        return self._place(Path(data_dir).expanduser()) is not None

    def instructions(self) -> str:
        """What to put where."""
        names = ", ".join(names[0] for names in self.files.values())
        return (
            f"Download {self.url} and name the folder that holds {self.archive}, "
            f"or the files {names} from it."
        )

    def _place(self, root: Path) -> Path | None:
        """The folder of the files, or the archive."""
        if root.is_file():
            return root
        for folder in self.folders:
            if self._in_folder(root / folder):
                return root / folder
        archives = (root / folder / self.archive for folder in self.folders)
        return next((archive for archive in archives if archive.is_file()), None)

    def _in_folder(self, folder: Path) -> dict[str, TextFile]:
        return self._pick({n: TextFile(folder / n) for n in self._names() if (folder / n).exists()})

    def _in_archive(self, archive: Path) -> dict[str, TextFile]:
        members = {}
        for member in list_members(archive):
            path = PurePosixPath(member)
            if path.name in self._names():
                members[path.name] = TextFile(archive, member)
        return self._pick(members)

    def _names(self) -> set[str]:
        return {name for names in self.files.values() for name in names}

    def _pick(self, present: Mapping[str, TextFile]) -> dict[str, TextFile]:
        found = {}
        for split, names in self.files.items():
            for name in names:
                if name in present:
                    found[split] = present[name]
                    break
        return found
