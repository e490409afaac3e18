"""`python -m export`."""

import sys

from export.main import main

sys.exit(main())
