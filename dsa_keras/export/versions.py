"""Version folders: which there are, and the manifest that each brings in `assets.extra`.

The manifest holds the sha256 of every file, the run the version was made from, its metrics and the
versions of the libraries. TF Serving leaves `assets.extra` alone.
"""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from dsa_keras.manifest import Manifest

MANIFEST = "assets.extra/manifest.json"
_HINT = "Export the version again"
_LIBRARIES = ("dsa-keras", "keras", "numpy", "onnx", "onnxruntime", "tensorflow", "tf2onnx")


def version_folders(folder: Path) -> dict[int, Path]:
    """The version folders of a model by number; other names are none of our business."""
    try:
        entries = list(folder.iterdir())
    except FileNotFoundError:
        return {}
    return {
        int(entry.name): entry
        for entry in entries
        if entry.name.isascii() and entry.name.isdigit() and len(entry.name) < 19 and entry.is_dir()
    }


def version_manifest(folder: str | os.PathLike[str]) -> Manifest:
    """The manifest of a version, to be read."""
    return Manifest(folder, MANIFEST, hint=_HINT)


def new_manifest(folder: str | os.PathLike[str]) -> Manifest:
    """The manifest of a version that is otherwise complete, to be written."""
    return Manifest.of(folder, MANIFEST, hint=_HINT)


def library_versions() -> dict[str, str]:
    """Of Python and the libraries that made the files."""
    found = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
