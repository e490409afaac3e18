"""`python -m export ...` in a clone is `dsa-keras export ...`, and `serve` and `client` too."""

import sys

from dsa_keras.commands.main import main

alone = sys.argv[1:2] in (["serve"], ["client"])
sys.exit(main([*([] if alone else ["export"]), *sys.argv[1:]]))
