"""`python -m tuning ...` in a clone is `dsa-keras tune ...`."""

import sys

from dsa_keras.commands.main import main

sys.exit(main(["tune", *sys.argv[1:]]))
