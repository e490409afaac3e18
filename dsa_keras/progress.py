"""The progress bar of every long job: on a terminal only, once the job has lasted a moment."""

from __future__ import annotations

from typing import Any

from tqdm import tqdm


def progress_bar(
    total: float | None, description: str, *, show: bool = True, **options: Any
) -> tqdm:
    """A bar on standard error; silent when that is not a terminal or `show` is false.

    Args:
        total: how many units the job has, or None where it is not known.
        description: what is going on, in a few words.
        show: False switches the bar off.
        **options: further options of `tqdm`, such as `unit`.
    """
    options = {"delay": 1.0, "dynamic_ncols": True, "leave": False, **options}
    return tqdm(total=total, desc=description, disable=None if show else True, **options)
