"""In headless Chromium: the page of `explain`, and TensorBoard's images and projector.

Not part of `make test`; run with `make test-browser`. Skipped where there is no Chromium.
"""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest

from dsa_keras.commands.main import main
from tests.runs import tiny_run
from tests.servers import fetch_until, tensorboard

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HOSTILE = "<script>document.title='owned'</script>"

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium: apt-get install chromium (Debian)"
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "run"
    tiny_run(path, encoder="dsa-multiple", num_attentions=2)
    assert main(["inspect", str(path), "--sentences", "30"]) == 0
    return path


def chromium(tmp_path, *arguments):
    """Runs Chromium without a window, with a profile of its own; gives what it prints."""
    done = subprocess.run(
        [
            *(CHROMIUM, "--headless", "--disable-gpu", "--no-sandbox", "--hide-scrollbars"),
            *("--enable-unsafe-swiftshader", "--window-size=1400,1000"),
            *(f"--user-data-dir={tmp_path / 'profile'}", *arguments),
        ],
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
    )
    return done.stdout


def screenshot(tmp_path, address):
    """The picture of a page that has had half a minute of its own time to load."""
    from matplotlib.image import imread

    path = tmp_path / "page.png"
    chromium(tmp_path, "--virtual-time-budget=30000", f"--screenshot={path}", address)
    return imread(path)[..., :3]


def test_hostile_text_is_shown_as_text(run, tmp_path):
    page = tmp_path / "page.html"
    assert main(["explain", str(run), f"{HOSTILE} film", "--html", str(page)]) == 0
    shown = chromium(tmp_path, "--dump-dom", page.as_uri())
    assert "<title>What the model attends to</title>" in shown
    assert "&lt;script&gt;document.title='owned'&lt;/script&gt;" in shown
    picture = screenshot(tmp_path, page.as_uri())
    # The blue of the shades: much more blue than red.
    assert (picture[..., 2] - picture[..., 0] > 0.2).sum() > 500


@pytest.mark.parametrize(
    ("tab", "path"),
    [("images", "data/plugin/images/tags"), ("projector", "data/plugin/projector/runs")],
)
def test_tensorboard_shows_something(run, tmp_path, tab, path):
    with tensorboard(run / "logs") as address:
        fetch_until(address, path, lambda value: "inspection" in value)
        empty = screenshot(tmp_path, f"{address}#text")
        picture = screenshot(tmp_path, f"{address}#{tab}")
    assert len(np.unique((picture * 255).astype(int) @ [1, 256, 65536])) > 100
    assert (np.abs(picture - empty).max(axis=-1) > 0.1).mean() > 0.02
