"""Run folders of format 1, whose settings of the network were one flat list.

It held the settings of every encoder there was; those of the run's own encoder are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dsa_keras.errors import ConfigError
from dsa_keras.inputs import PAIR, SENTENCE

FORMAT = 1

_OBJECTIVE, _HEAD = "classification", "mlp"
"""All that format 1 knew."""


def migrated(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of `config.json` as today's format has them.

    Raises:
        ConfigError: if they are not those of format 1.
    """
    values = dict(values)
    try:
        class_names, is_pair = values.pop("class_names"), values.pop("is_pair")
        model = _model(values["model"], class_names, bool(is_pair))
        if model["objective"]["class_names"] and len(class_names) != values["model"]["num_classes"]:
            raise ConfigError(f"it names {len(class_names)} classes, its model has others")
    except (KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"is not a whole config of format 1 ({error})") from None
    return {**values, "model": model}


def hyper_parameters(values: Mapping[str, Any]) -> dict[str, Any]:
    """The hyper-parameters that a flat `model` and `training` choose, by name."""
    model = _model(values["model"], ["0", "1"], is_pair=False)
    chosen = {
        **model["objective"],
        **model["head"],
        **model["encoder"],
        **model,
        "encoder": model["encoder"]["name"],
    }
    for name in ("name", "head", "objective", "inputs", "class_names", "vocabulary_size"):
        chosen.pop(name, None)
    return {**chosen, **values["training"]}


def _model(flat: Mapping[str, Any], class_names: Any, is_pair: bool) -> dict[str, Any]:
    from dsa_keras.config import ModelConfig
    from dsa_keras.encoders import ENCODERS
    from dsa_keras.heads import HEADS
    from dsa_keras.objectives import OBJECTIVES

    encoder, objective = ENCODERS.registered(str(flat["encoder"])), OBJECTIVES.get(_OBJECTIVE)
    head = HEADS.get(_HEAD)
    own = ("vocabulary_size", *ModelConfig.own_choices())

    def part(names: tuple[str, ...]) -> dict[str, Any]:
        return {name: flat[name] for name in names if name in flat}

    return {
        **part(own),
        "inputs": (PAIR if is_pair else SENTENCE).to_json(),
        "encoder": {"name": encoder.name, **part(encoder.choices())},
        "objective": {
            "name": objective.name,
            "class_names": class_names,
        },
        "head": {"name": head.name, **part(head.choices())},
    }
