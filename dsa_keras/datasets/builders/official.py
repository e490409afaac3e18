"""What both builders share: where the official data comes from, and whether it is all there.

The folder of manual downloads comes first; without the data there, the official archive is
downloaded. TFDS retries a dead network for minutes, so the address is tried once, briefly, before
TFDS is asked. The publisher gives no checksum, so the content is checked by what the papers print:
the number of labelled examples in every split.
"""

from __future__ import annotations

import http.client
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import tensorflow_datasets as tfds

from dsa_keras.datasets.dataset import Dataset
from dsa_keras.datasets.layout import Layout
from dsa_keras.errors import DataError

CONNECT_SECONDS = 5.0


def official_data(downloads: tfds.download.DownloadManager, layout: Layout) -> Path:
    """Gives the folder or archive to read: the user's own, or else the official download.

    Raises:
        DataError: if the user has none and the official address does not answer.
    """
    manual = _manual_folder(downloads)
    if manual is not None and layout.is_in(manual):
        return manual
    if problem := connection_problem(layout.url):
        raise DataError(
            f"{layout.title} is in no folder given as manual_dir, and {layout.url} does not answer "
            f"({problem})",
            where=manual,
            hint=f"{layout.instructions()} Pass it to TFDS as DownloadConfig(manual_dir=...)",
        )
    return Path(downloads.download(layout.url))


def connection_problem(url: str) -> str | None:
    """Why an address cannot be downloaded from just now, or None."""
    request = urllib.request.Request(url, method="HEAD")
    try:
        urllib.request.urlopen(request, timeout=CONNECT_SECONDS).close()
    except (OSError, http.client.HTTPException) as error:
        return str(getattr(error, "reason", error)) or type(error).__name__
    return None


def check_sizes(
    dataset: Dataset, expected: Mapping[str, int] | None, where: Path, hint: str
) -> None:
    """Checks every split against its published size; None checks nothing.

    Raises:
        DataError: if a split is missing or has another size.
    """
    if expected is None:
        return
    found = {name: len(split) for name, split in dataset.splits.items()}
    wrong = [
        f"{name} has {found.get(name, 0):,} examples, not {size:,}"
        for name, size in expected.items()
        if found.get(name, 0) != size
    ]
    if wrong:
        raise DataError(f"not the published data: {'; '.join(wrong)}", where=where, hint=hint)


def _manual_folder(downloads: tfds.download.DownloadManager) -> Path | None:
    try:
        return Path(downloads.manual_dir)
    except AssertionError:  # what TFDS raises where the folder is missing or empty
        return None
