"""Makes the texts that lie outside `docs/` pages of the site, and their links lead to pages.

In the repository a link goes from file to file: `../results/speed.md`. The site has the same files
in other places, `docs/` at its top. So each relative link is followed in the repository, and then
written as the way between the two pages of the site.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

_TEXTS = {name: name for name in ("CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "SECURITY.md")}
_TEXTS["README.md"] = "index.md"
"""Texts of the repository, and where the site has them; the folder `results/` besides."""

_LINK = re.compile(r"(?<=\]\()(?![a-z+]+:|#|/)([^)\s#]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the texts to the pages."""
    root = Path(config.config_file_path).parent
    results = (path for path in sorted((root / "results").rglob("*")) if path.is_file())
    found = _TEXTS | {path: path for path in (str(one.relative_to(root)) for one in results)}
    for name, page in found.items():
        if (root / name).exists():
            files.append(File.generated(config, page, abs_src_path=str(root / name)))
    return files


def on_page_markdown(markdown: str, page: Any, config: MkDocsConfig, files: Files) -> str:
    """Writes relative links as they are in the site."""
    here = Path(page.file.abs_src_path).relative_to(Path(config.config_file_path).parent)

    def of_site(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(here.parent.as_posix(), link[1]))
        target = _TEXTS.get(target, target.removeprefix("docs/"))
        return posixpath.relpath(target, posixpath.dirname(page.file.src_uri) or ".")

    return _LINK.sub(of_site, markdown)
