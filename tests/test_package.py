"""What a user gets: light imports, registered layers, a wheel with the package and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent
HEAVY = ("tensorflow", "keras", "tensorflow_datasets", "keras_tuner", "matplotlib")


@pytest.mark.parametrize(
    "module", ["dsa_keras", "dsa_keras.config", "dsa_keras.errors", "dsa_keras.files"]
)
def test_imports_without_tensorflow(module):
    code = f"import sys, {module}; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_every_layer_is_registered():
    import keras

    from dsa_keras import layers

    for name in layers.__all__:
        one = getattr(layers, name)
        if issubclass(one, keras.Layer | keras.Initializer):
            assert keras.saving.get_registered_name(one) == f"dsa_keras>{name}"
            assert keras.saving.get_registered_object(f"dsa_keras>{name}") is one


def test_the_wheel_holds_the_package_and_nothing_else(tmp_path):
    sources = tmp_path / "sources"
    # A copy, since a build leaves folders behind.
    shutil.copytree(
        REPOSITORY / "dsa_keras",
        sources / "dsa_keras",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, sources)
    # Folders beside the package that a careless build would take in.
    for name in ("tests", "tuning", "export"):
        (sources / name).mkdir()
        (sources / name / "module.py").touch()
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"),
            *("--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path), str(sources)),
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    (wheel,) = tmp_path.glob("dsa_keras-*-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
    package = {name for name in inside if ".dist-info/" not in name}
    written = {str(one.relative_to(sources)) for one in (sources / "dsa_keras").rglob("*.py")}
    assert package >= written | {"dsa_keras/py.typed"}
    assert {name.split("/")[0] for name in package} == {"dsa_keras"}
