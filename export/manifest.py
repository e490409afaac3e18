"""What an exported version says about itself: `assets.extra/manifest.json`.

The sha256 of every file, the run it was made from, its metrics and the versions of the libraries.
It stands in `assets.extra`, which TF Serving leaves alone.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from dsa_keras.errors import RunError
from dsa_keras.files import write_json
from dsa_keras.training.run import RunConfig

MANIFEST = Path("assets.extra") / "manifest.json"
FORMAT = 1
_LIBRARIES = ("dsa-keras", "keras", "numpy", "onnx", "onnxruntime", "tensorflow", "tf2onnx")


def write_manifest(
    folder: Path, config: RunConfig, metrics: Mapping[str, Any], **facts: Any
) -> None:
    """Writes the manifest of a version that is otherwise complete."""
    write_json(
        folder / MANIFEST,
        {
            "format": FORMAT,
            **facts,
            "files": checksums(folder),
            "metrics": dict(metrics),
            "versions": versions(),
            "run": config.to_dict(),
        },
    )


def read_manifest(folder: Path) -> dict[str, Any]:
    """Reads the manifest and checks every file against it.

    Raises:
        RunError: if a file is missing, added or changed.
    """
    file = folder / MANIFEST
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
        expected = manifest["files"]
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError):
        raise RunError(
            "is missing or damaged",
            where=file,
            hint="Give a version that python -m export saved-model wrote",
        ) from None
    found = checksums(folder)
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            problem = "is missing" if name not in found else "is not the file that was exported"
            raise RunError(problem, where=folder / name, hint="Export the version again")
    return manifest


def checksums(folder: Path) -> dict[str, str]:
    """The sha256 of every file but the manifest, by path."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): sha256(path)
        for path in files
        if path.relative_to(folder) != MANIFEST
    }


def sha256(path: Path) -> str:
    """Of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def versions() -> dict[str, str]:
    """Of Python and the libraries that made the files."""
    found = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
