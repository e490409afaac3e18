"""Parameters of a test of which some are left to `make test-all`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def some_slow(parameters: Iterable[Any], slow: Collection[Any]) -> list[Any]:
    """The parameters, those in `slow` marked so; a quicker test shows the same in another form."""
    parameters = list(parameters)
    assert set(slow) <= set(parameters), "a slow parameter is none of the parameters"
    return [
        pytest.param(*(one if isinstance(one, tuple) else (one,)), marks=pytest.mark.slow)
        if one in slow
        else one
        for one in parameters
    ]
