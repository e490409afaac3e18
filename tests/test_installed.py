"""The installed product, not the checkout: the wheel in an environment outside the clone.

The libraries are those of the environment that runs the tests; the package is the wheel alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

LAYER = """
import keras, numpy as np
from dsa_keras.layers import DenseConvBlock, DynamicSelfAttention
ids = keras.Input((None,), dtype="int32")
words = keras.layers.Embedding(50, 8, mask_zero=True)(ids)
words = DenseConvBlock(kernel_size=3, filters=4, first_filters=8, num_layers=1)(words)
model = keras.Model(ids, keras.layers.Dense(2)(DynamicSelfAttention(8)(words)))
print(model(np.array([[5, 7, 0]])).shape)
"""

SERVED = """
import json, subprocess, sys, urllib.request
server = subprocess.Popen(
    [sys.argv[1], "serve", "models/demo", "--rest-port", "0", "--grpc-port", "0"],
    stdout=subprocess.PIPE, text=True,
)
try:
    line = next(line for line in server.stdout if "http://" in line)
    url = next(word for word in line.split() if word.startswith("http://")).rstrip(".,;")
    url = url.split("/v1")[0] + "/v1/models/demo:predict"
    body = json.dumps({"instances": ["a fine film"]}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    print(urllib.request.urlopen(request, timeout=60).read().decode())
finally:
    server.terminate()
    server.wait()
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    build += ["--no-build-isolation", "--disable-pip-version-check", "--wheel-dir", str(folder)]
    subprocess.run([*build, str(ROOT)], check=True, capture_output=True, text=True)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """An environment with the wheel; gives its Python and a folder to work in."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True
    )
    python = folder / "venv" / "bin" / "python"
    site = Path(_asked(python, "import sysconfig; print(sysconfig.get_path('purelib'))"))
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    install += ["--no-deps", "--disable-pip-version-check", str(wheel)]
    subprocess.run(install, check=True, capture_output=True, text=True)
    # Behind the wheel come the libraries, but for the package of this checkout.
    here = sysconfig.get_path("purelib")
    (site / "libraries.pth").write_text(f"import sys; sys.path.append({here!r})\n")
    (folder / "work").mkdir()
    return python, folder / "work"


def _asked(python: Path, script: str, cwd: Path | None = None, *arguments: str) -> str:
    command = [str(python), "-c", script, *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_wheel_puts_one_name_into_site_packages(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"dsa_keras"}
    for part in ("layers", "encoders", "training", "tuning", "export/server", "commands"):
        assert any(name.startswith(f"dsa_keras/{part}/") for name in names), part
    assert "dsa_keras/py.typed" in names
    assert not any(name.startswith("dsa_keras/tests") for name in names)


def test_the_installed_product_does_it_all(installed):
    python, work = installed
    command = python.parent / "dsa-keras"

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [str(command), *arguments], cwd=work, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    where = _asked(python, "import dsa_keras; print(dsa_keras.__file__)", work)
    assert not where.startswith(str(ROOT)), "the checkout was found instead of the wheel"
    assert _asked(python, LAYER, work).endswith("(1, 2)")
    assert run("--version").startswith("dsa_keras ")
    small = ["--units", "8", "--embedding-dim", "8", "--first-filters", "8", "--filters", "4"]
    run("train", "demo-sentiment", "--size", "150", "--epochs", "1", *small, "--run-dir", "run")
    assert "label" in json.loads(run("predict", "run", "a fine film", "--format", "jsonl"))
    run("export", "saved-model", "run", "--out", "models/demo")
    assert "all agree" in run("export", "verify", "models/demo", "--run", "run", "--no-serve")
    answer = json.loads(_asked(python, SERVED, work, str(command)))
    assert answer["predictions"][0]["label"] in ("negative", "positive")


def test_a_missing_extra_says_what_to_install(installed):
    python, work = installed
    script = (
        "import importlib.util, sys\n"
        "real = importlib.util.find_spec\n"
        "gone = lambda name, *rest: None if name == 'keras_tuner' else real(name, *rest)\n"
        "importlib.util.find_spec = gone\n"
        "from dsa_keras.commands.main import main\n"
        "sys.exit(main(['tune', 'search', 'demo-sentiment', '--space', 'small', '--dir', 'd']))"
    )
    done = subprocess.run(
        [str(python), "-c", script], cwd=work, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "pip install 'dsa-keras[tuning]'" in done.stderr
    assert done.stderr.count("\n") == 1
