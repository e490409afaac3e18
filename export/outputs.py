"""The files that an export may write."""

from __future__ import annotations

import os
from pathlib import Path

from dsa_keras.errors import ConfigError


def new_file(out: str | os.PathLike[str], suffix: str) -> Path:
    """The path of a file to write.

    Commands ask before they load TensorFlow, which takes seconds; the functions that write ask
    again.

    Raises:
        ConfigError: if its name has another suffix or it exists.
    """
    out = Path(out)
    if out.suffix != suffix:
        raise ConfigError(
            f"the name must end in {suffix}", where=out, hint=f"Give --out model{suffix}"
        )
    if out.exists():
        raise ConfigError("the file exists", where=out, hint="Remove it, or choose another --out")
    return out
