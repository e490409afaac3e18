"""A search of one's own, as a table: how large a head does DSA want, and how much of it to drop?

    dsa-keras tune search sst2 --import tuning.head_sizes --space head-sizes \
        --data-dir data --vectors glove.840B.300d.zip --dir tuning_runs/head-sizes

Copy this file, change the table, and name yours with `--import` and `--space`.
"""

from dsa_keras.tuning.spaces import SPACES, Space, row

# fmt: off
SPACES["head-sizes"] = Space((
    row("hidden_units",      (100, 200, 300, 600)),
    row("num_hidden_layers", (1, 2)),
    row("head_dropout",      (0.1, 0.2, 0.4)),
    row("learning_rate",     (5e-4, 1e-3, 2e-3),   optimizer="adam"),
    row("learning_rate",     (0.25, 0.5, 1.0),     optimizer="adadelta"),
))
# fmt: on
