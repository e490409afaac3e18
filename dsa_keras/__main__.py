"""`python -m dsa_keras` is `dsa-keras`."""

from __future__ import annotations

import sys

from dsa_keras.commands.main import main

if __name__ == "__main__":
    sys.exit(main())
