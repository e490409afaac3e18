"""What a Python of its own has loaded."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent


def loaded_after(script: str, names: Sequence[str]) -> list[str]:
    """Which of the named modules a new Python has loaded after a script."""
    script = f"import sys\n{script}\nprint([name for name in {names!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return ast.literal_eval(done.stdout.splitlines()[-1])
