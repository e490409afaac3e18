"""The documents do what they say: their commands and their Python run, their links lead somewhere.

A block of commands either runs here, or has `<!-- not run: reason -->` before it; every command of
ours is parsed in any case. A page has a folder of its own with the run of the demo in it. A block
with `title="NAME"` is a file of that folder.
"""

from __future__ import annotations

import re
import shlex
import shutil
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from own_encoders import forgotten

import dsa_keras
from dsa_keras.encoders import ENCODERS

ROOT = Path(__file__).parent.parent
GUIDES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TEXTS = [
    *GUIDES,
    *sorted((ROOT / "docs" / "api").glob("*.md")),
    *(ROOT / f"{name}.md" for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY")),
    *sorted((ROOT / "results").rglob("*.md")),
]
OURS = ("dsa-keras", "python -m dsa_keras", "python -m tuning", "python -m export")
OTHERS = (".", "curl", "make", "mypy", "pip", "pytest", "ruff", "saved_model_cli", "tensorboard")
DEMO = ("demo", "--size", "300", "--epochs", "1")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    title: str | None
    not_run: str | None
    text: str

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    def commands(self) -> list[list[str]]:
        """The words of each command, continued lines joined and comments left out."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [words for line in lines if (words := shlex.split(line, comments=True))]


_FENCE = re.compile(r"```(?P<language>\w*)(?: +title=\"(?P<title>[^\"]+)\")?")
_NOT_RUN = re.compile(r"<!-- not run: (.+) -->")


def blocks(page: Path) -> Iterator[Block]:
    lines = page.read_text(encoding="utf-8").splitlines()
    number = 0
    while number < len(lines):
        if fence := _FENCE.fullmatch(lines[number]):
            end = lines.index("```", number + 1)
            before = next((line for line in reversed(lines[:number]) if line), "")
            not_run = _NOT_RUN.fullmatch(before)
            text = "\n".join(lines[number + 1 : end]) + "\n"
            yield Block(page, number + 1, *fence.groups(), not_run and not_run[1], text)
            number = end
        number += 1


def _id(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _arguments(words: list[str]) -> list[str] | None:
    """What the parser of `dsa-keras` gets for a command; None if the command is not ours."""
    known = next((one.split() for one in OURS if words[: len(one.split())] == one.split()), None)
    if known is None:
        return None
    rest = words[len(known) :]
    if known[-1] == "tuning":
        return ["tune", *rest]
    if known[-1] == "export" and rest[0] not in ("serve", "client"):
        return ["export", *rest]
    return rest


def _code_of(call: Callable[[list[str]], object], arguments: list[str]) -> int:
    """The exit code; `--help` and mistakes end a command by `SystemExit`."""
    try:
        code = call(arguments)
    except SystemExit as stopped:
        code = stopped.code
    return code if isinstance(code, int) else 0


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The run of a small demo, made once."""
    from dsa_keras.commands.main import main

    folder = tmp_path_factory.mktemp("demo")
    assert main([*DEMO, "--run-dir", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def parser():
    from dsa_keras.commands.main import build_parser

    return build_parser()


@pytest.mark.parametrize("page", GUIDES, ids=_id)
def test_a_page_runs_from_top_to_bottom(page, demo, tmp_path, monkeypatch, capsys):
    from dsa_keras.commands.main import main

    found = list(blocks(page))
    shutil.copytree(demo, tmp_path / "runs" / "demo")
    for block in found:
        if block.title:
            (tmp_path / block.title).write_text(block.text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with forgotten(ENCODERS):
        _run(found, main, page.stem, capsys)


def _run(found, main, name, capsys):
    names: dict[str, object] = {"__name__": name}
    for block in found:
        if block.not_run:
            continue
        if block.language == "python":
            exec(compile(block.text, block.where, "exec", dont_inherit=True), names)
        for words in block.commands() if block.language == "bash" else []:
            arguments = _arguments(words)
            told = f"{block.where}: {shlex.join(words)}"
            assert arguments is not None, f"{told} can only be marked as not run"
            code = _code_of(main, arguments)
            assert code == 0, f"{told}\n{capsys.readouterr().err}"


@pytest.mark.parametrize("page", TEXTS, ids=_id)
def test_every_command_is_one(page, parser, capsys):
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for block in blocks(page):
        for words in block.commands() if block.language in ("bash", "sh") else []:
            told = f"{block.where}: {shlex.join(words)}"
            while "=" in words[0]:
                words = words[1:]
            arguments = _arguments(words)
            if arguments is not None:
                code = _code_of(parser.parse_args, arguments)
                assert code == 0, f"{told}\n{capsys.readouterr().err}"
            elif words[:2] == ["python", "-m"]:
                file = ROOT / Path(*words[2].split(".")).with_suffix(".py")
                assert file.exists(), told
            else:
                assert words[0] in OTHERS, told
                if words[0] == "make":
                    assert words[1] in targets, told
                if brought := re.search(r"\.\[([\w,]+)\]", " ".join(words)):
                    assert set(brought[1].split(",")) <= set(extras), told


_LINK = re.compile(r"\]\((?![a-z]+:)([^)\s#]*)(?:#([^)\s]+))?\)")
_NO_ANCHOR = re.compile(r"[^\w\- ]")


@pytest.mark.parametrize("page", TEXTS, ids=_id)
def test_every_link_leads_somewhere(page):
    # Code is no text; `make docs` checks the links of the site itself.
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for path, anchor in _LINK.findall(text):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{_id(page)}: {path}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.M)
            anchors = [_NO_ANCHOR.sub("", one.lower()).replace(" ", "-") for one in headings]
            assert anchor in anchors, f"{_id(page)}: {path}#{anchor}"


def test_the_readme_is_short():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 130


def test_the_readme_has_the_figures_of_the_study():
    recorded = (ROOT / "results" / "accuracy.md").read_text(encoding="utf-8")
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("## The paper's results")[1]
    figures = re.findall(r"\d\d\.\d\d ± \d\.\d\d", section)
    assert len(figures) >= 5
    assert [one for one in figures if one not in recorded] == []


def test_tests_that_are_named_exist():
    found = []
    for page in TEXTS:
        text = page.read_text(encoding="utf-8")
        for file, name in re.findall(r"(tests/\w+\.py)(?:::(\w+))?", text):
            found.append(file)
            if any(block.title == file for block in blocks(page)):
                continue  # the page says how to make it
            assert (ROOT / file).exists(), f"{_id(page)}: {file}"
            if name:
                assert f"def {name}(" in (ROOT / file).read_text(), f"{_id(page)}: {file}::{name}"
    assert len(found) > 10


def test_versions_agree():
    version = dsa_keras.__version__
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {version}\n" in (ROOT / "CHANGELOG.md").read_text()


def test_what_builds_the_site_is_pinned():
    lines = (ROOT / "docs" / "requirements.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert [line for line in pins if not re.fullmatch(r"[\w-]+==[\d.]+", line)] == []
