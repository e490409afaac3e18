"""Options that become settings: the data, the encoder, the hyper-parameters.

They are made from the registries: a new encoder, objective or data set brings its own. Those of a
user's own module do so too if `import_named` imports the module before the parser is made.
"""

from dsa_keras.options.data import add_data_options, add_task, data_options
from dsa_keras.options.hyper_parameters import (
    add_encoder_option,
    add_hyper_parameters,
    check_hyper_parameters,
    chosen_recipe,
    given_hyper_parameters,
)
from dsa_keras.options.modules import add_import_option, add_run, import_named, import_words

__all__ = [
    "add_data_options",
    "add_encoder_option",
    "add_hyper_parameters",
    "add_import_option",
    "add_run",
    "add_task",
    "check_hyper_parameters",
    "chosen_recipe",
    "data_options",
    "given_hyper_parameters",
    "import_named",
    "import_words",
]
