"""Run folders with random weights and their exports, made once for all tests of `export`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from runs import SMALL

TEXTS = [
    "a good film",
    "",
    "   ",
    "It's “odd” — isn't it… naïve, 東京 👩‍👩‍👧?",
    "<pad> <unk> good <pad>",
    "not one bad word " * 40,
    "the plot was bad .",
]
PAIRS = list(zip(TEXTS, TEXTS[3:] + TEXTS[:3], strict=True))


@dataclass(frozen=True)
class Case:
    run: Path
    version: Path
    is_pair: bool

    @property
    def texts(self) -> list[Any]:
        return PAIRS if self.is_pair else TEXTS


CASES: dict[str, dict[str, Any]] = {
    "single": {"tokenizer": "kim", "num_iterations": 3, "num_attentions": 2},
    "pair": {"pair": True, "tokenizer": "ptb", "num_iterations": 1},
}


def random_run(
    path: Path, pair: bool = False, tokenizer: str = "whitespace", files: bool = False, **model: Any
) -> Path:
    """A run folder as training leaves it, with random weights and batch-norm statistics."""
    from dsa_keras.config import TrainingConfig, preset
    from dsa_keras.data import Vocabulary, load_dataset
    from dsa_keras.data.batches import count_words, distinct
    from dsa_keras.models import build_classifier, build_pair_classifier
    from dsa_keras.training.run import Run, RunConfig
    from dsa_keras.training.weights import save_weights, weights_of

    task = "demo-nli" if pair else "demo-sentiment"
    dataset = load_dataset(task, size=150)
    counts = count_words(distinct(dataset["train"].texts)[0], tokenizer)
    vocabulary = Vocabulary.from_counts({**counts, "good": 1, "bad": 1, "film": 1})
    config = preset("snli" if pair else "sst2", model.pop("encoder", "dsa-single")).model
    config = config.replace(
        **{**SMALL, **model},
        vocabulary_size=len(vocabulary),
        num_classes=len(dataset.class_names),
    )
    run = Run(path)
    path.mkdir(parents=True)
    run.save_config(
        RunConfig(
            task=task,
            class_names=dataset.class_names,
            is_pair=pair,
            model=config,
            training=TrainingConfig().replace(tokenizer=tokenizer),
            data={"data_dir": None, "options": {"size": 150}},
            vectors={"files": ["vectors.txt"] if files else []},
        )
    )
    vocabulary.save(run.vocabulary_file)
    rng = np.random.default_rng(3)
    run.save_vectors(rng.normal(size=(len(vocabulary), SMALL["embedding_dim"])).astype("float32"))
    model = (build_pair_classifier if pair else build_classifier)(config)
    weights = {
        name: value + rng.uniform(0.1, 0.5, value.shape).astype(value.dtype)
        for name, value in weights_of(model).items()
    }
    save_weights(run.best_file, weights)
    run.metrics_file.write_text(json.dumps({"epoch": 1, "dev_accuracy": 0.5}) + "\n")
    return path


_MADE: dict[str, Case] = {}


def case(factory: Any, name: str) -> Case:
    """The export of one of `CASES`, made at the first call of a test session."""
    if name not in _MADE:
        _MADE[name] = _exported(factory, name)
    return _MADE[name]


def _exported(factory: Any, name: str) -> Case:
    from export.saved_model import export_saved_model

    options = CASES[name]
    folder = factory.mktemp(name)
    run = random_run(folder / "run", **options)
    exported = export_saved_model(run, folder / "models" / name)
    return Case(run, exported.path, options.get("pair", False))
