"""`CONTRIBUTING.md` can be followed to the letter: a copy gets its files and runs its commands."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from slow_parameters import some_slow
from test_docs import ROOT, Block, blocks

PAGE = ROOT / "CONTRIBUTING.md"
COPIED = ("dsa_keras", "tests", "pyproject.toml")

# What the page says is there: a file of numbers, a folder of topics.
SCORES = "".join(f"a {word} film {n},{n % 5}.5\n" for n in range(20) for word in ("dull", "clever"))
TOPICS = "sport\tThey won.\nculture\tA film opens.\npolitics\tA vote is held.\n"


def pages() -> dict[str, list[Block]]:
    """The blocks of each part, by its heading."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    found: dict[str, list[Block]] = {}
    for block in blocks(PAGE):
        heading = next(line for line in reversed(lines[: block.line]) if line.startswith("## "))
        found.setdefault(heading.removeprefix("## "), []).append(block)
    return found


PAGES = pages()
ADDED = [name for name in PAGES if name.startswith("Add ")]


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the repository with the files of all pages."""
    folder = tmp_path_factory.mktemp("repository")
    unused = shutil.ignore_patterns("__pycache__", "golden", "browser")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=unused)
        else:
            shutil.copy(ROOT / name, folder)
    for block in files():
        assert not (ROOT / block.title).exists(), block.where
        (folder / block.title).write_text(block.text, encoding="utf-8")
    (folder / "scores.csv").write_text(f"text,label\n{SCORES}")
    (folder / "data").mkdir()
    for split in ("train", "dev"):
        (folder / "data" / f"{split}.tsv").write_text(TOPICS)
    return folder


def files() -> list[Block]:
    """The files that the pages make."""
    return [block for name in ADDED for block in PAGES[name] if block.title]


def done(folder, *words):
    """Runs a command in the copy, by this Python; gives what it printed."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    known = {
        "dsa-keras": [sys.executable, "-m", "dsa_keras"],
        "pytest": [sys.executable, "-m", "pytest", "-q", "-n0"],
    }
    start = known.get(words[0]) or [sys.executable, "-m", words[0]]
    run = subprocess.run(
        [*start, *words[1:]], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, f"{shlex.join(words)}\n{run.stdout}\n{run.stderr}"
    return run.stdout


def test_there_are_three_pages_of_one_file_each():
    assert ADDED == ["Add an encoder", "Add an objective", "Add a data set"]
    made = {name: [block.title for block in PAGES[name] if block.title] for name in ADDED}
    ours = [[title for title in titles if "tests/" not in title] for titles in made.values()]
    assert [len(titles) for titles in ours] == [1, 1, 1]
    kinds = [str(Path(*titles).parent) for titles in ours]
    assert kinds == ["dsa_keras/encoders", "dsa_keras/objectives", "dsa_keras/datasets"]
    # The tests of encoders are there already.
    assert [len(titles) for titles in made.values()] == [1, 2, 2]


@pytest.mark.parametrize("page", some_slow(ADDED, {"Add an objective", "Add a data set"}))
def test_a_page_can_be_followed(page, copy):
    commands = [
        words for block in PAGES[page] if block.language == "bash" for words in block.commands()
    ]
    assert [words[0] for words in commands] == ["pytest", "dsa-keras", "dsa-keras"]
    for words in commands:
        out = done(copy, *words)
        if words[0] == "pytest":
            assert " passed" in out
            assert " failed" not in out
            assert "skipped" not in out


def test_the_files_keep_the_rules_of_lint(copy):
    names = [block.title for block in files()]
    done(copy, "ruff", "check", "--no-cache", *names)
    done(copy, "ruff", "format", "--no-cache", "--check", *names)


@pytest.mark.slow
def test_the_files_keep_the_rules_of_types(copy):
    done(copy, "mypy", *(block.title for block in files() if "tests/" not in block.title))
