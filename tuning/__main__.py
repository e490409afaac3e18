"""`python -m tuning`."""

from __future__ import annotations

import sys

from tuning.commands import main

sys.exit(main())
