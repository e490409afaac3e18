"""The versions of a model: found on disk, loaded in the background, replaced without a gap.

The highest version that loads answers, and those with a label stay as well. A new version is loaded
and warmed up while the old one answers; then new requests go to the new one, and the old one is
let go when its last request is done. A version that does not load, or whose files are not those of
its manifest, is reported in the model's status, and tried again when its files change. Deleting the
highest version's folder goes back to the one before it.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import logging
from collections.abc import Iterator
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING

from dsa_keras.export.server.metrics import Metrics
from dsa_keras.export.server.status import ServingError, invalid
from dsa_keras.export.versions import version_folders, version_manifest

if TYPE_CHECKING:
    from dsa_keras.export.server.signatures import SavedModel

log = logging.getLogger("dsa_keras.export.serve")


@dataclasses.dataclass
class Version:
    """A version and how far its life has come, in the words of TensorFlow Serving."""

    number: int
    state: str = "LOADING"
    error: str = ""
    model: SavedModel | None = None
    files: frozenset = frozenset()
    users: int = 0
    idle: asyncio.Event = dataclasses.field(default_factory=asyncio.Event)


class Model:
    """A folder of versions; lives in one event loop.

    Args:
        folder: the folder, which also names the model.
        labels: version numbers by label.
        loader: the thread that loads versions.
        metrics: notes which versions answer.
        warm_up: whether versions run their warm-up requests before they answer.
    """

    def __init__(
        self,
        folder: Path,
        labels: dict[str, int],
        loader: Executor,
        metrics: Metrics,
        *,
        warm_up: bool = True,
    ) -> None:
        self.name = folder.name
        self._folder, self._labels, self._loader = folder, labels, loader
        self._metrics, self._warm_up = metrics, warm_up
        self._versions: dict[int, Version] = {}
        self._leaving: set[asyncio.Task] = set()

    @contextlib.contextmanager
    def use(
        self, number: int | None = None, label: str | None = None
    ) -> Iterator[tuple[int, SavedModel]]:
        """Holds a version while a request is answered; the highest one unless told otherwise.

        Raises:
            ServingError: if there is no such version.
        """
        wanted = self._labelled(label) if label else number
        available = self._available()
        if wanted is None:
            if not available:
                raise ServingError(
                    "NOT_FOUND", f"Servable not found for request: Latest({self.name})"
                )
            wanted = max(available)
        if wanted not in available:
            raise ServingError(
                "NOT_FOUND", f"Servable not found for request: Specific({self.name}, {wanted})"
            )
        version = available[wanted]
        assert version.model is not None
        version.users += 1
        try:
            yield wanted, version.model
        finally:
            version.users -= 1
            if not version.users:
                version.idle.set()

    def status(self, number: int | None = None, label: str | None = None) -> list[Version]:
        """The versions known, highest first.

        Raises:
            ServingError: if there is none, or not the one asked for.
        """
        wanted = self._labelled(label) if label else number
        if wanted is not None:
            if wanted not in self._versions:
                raise ServingError(
                    "NOT_FOUND", f"Could not find version {wanted} of model {self.name}"
                )
            return [self._versions[wanted]]
        if not self._versions:
            raise ServingError("NOT_FOUND", f"Could not find any versions of model {self.name}")
        return [self._versions[number] for number in sorted(self._versions, reverse=True)]

    async def refresh(self) -> None:
        """Looks at the folder once and follows what changed."""
        found = version_folders(self._folder)
        wanted = {n for n in self._labels.values() if n in found and await self._load(n, found[n])}
        for number in sorted(found, reverse=True):
            if await self._load(number, found[number]):
                wanted.add(number)
                break
        if wanted:
            for number in self._available().keys() - wanted:
                self._let_go(self._versions[number])
        for number in self._versions.keys() - found.keys():
            if self._versions[number].state == "END":
                del self._versions[number]

    def close(self) -> None:
        """Stops waiting for versions that were to be unloaded."""
        for task in self._leaving:
            task.cancel()

    def _available(self) -> dict[int, Version]:
        return {n: v for n, v in self._versions.items() if v.state == "AVAILABLE"}

    def _labelled(self, label: str) -> int:
        try:
            return self._labels[label]
        except KeyError:
            raise invalid(f"Unrecognized servable version label: {label}") from None

    async def _load(self, number: int, folder: Path) -> bool:
        """Loads a version unless it is loaded, or known not to load as it is."""
        known = self._versions.get(number)
        if known and known.state == "AVAILABLE":
            return True
        files = _files(folder)
        if known and (known.state == "UNLOADING" or (known.error and known.files == files)):
            return False
        version = self._versions[number] = Version(number, files=files)
        try:
            version.model = await asyncio.get_running_loop().run_in_executor(
                self._loader, _load_model, folder, self._warm_up
            )
        except Exception as error:
            reason = str(error).partition("\n")[0] or type(error).__name__
            version.state, version.error = "END", reason
            log.warning("%s version %d cannot be loaded: %s", self.name, number, reason)
            return False
        version.state = "AVAILABLE"
        self._metrics.version(self.name, number, available=True)
        log.info("%s version %d answers", self.name, number)
        return True

    def _let_go(self, version: Version) -> None:
        version.state = "UNLOADING"
        self._metrics.version(self.name, version.number, available=False)
        task = asyncio.get_running_loop().create_task(self._unload(version))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def _unload(self, version: Version) -> None:
        while version.users:
            version.idle.clear()
            await version.idle.wait()
        version.model = None
        await asyncio.get_running_loop().run_in_executor(self._loader, gc.collect)
        version.state = "END"
        log.info("%s version %d unloaded", self.name, version.number)


def _load_model(folder: Path, warm_up: bool) -> SavedModel:
    """Loads a version whose files are those of its manifest, if it has one.

    Files that the manifest does not list are left alone, such as warm-up requests of one's own.
    """
    from dsa_keras.export.server.signatures import SavedModel

    manifest = version_manifest(folder)
    if manifest.exists:
        manifest.check(manifest.names)
    return SavedModel(folder, warm_up=warm_up)


def _files(folder: Path) -> frozenset:
    """Names, sizes and times of a version's files: they tell when it was changed."""
    found = set()
    with contextlib.suppress(FileNotFoundError):
        for path in folder.rglob("*"):
            state = path.stat()
            found.add((str(path), state.st_size, state.st_mtime_ns))
    return frozenset(found)
