"""Run folders with random weights and their exports, made once for all tests of `export`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from runs import SMALL

if TYPE_CHECKING:
    from dsa_keras.datasets import Dataset
    from dsa_keras.inputs import Inputs

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
    inputs: Inputs

    @property
    def texts(self) -> list[Any]:
        return PAIRS if self.inputs.is_pair else TEXTS


CASES: dict[str, dict[str, Any]] = {
    "single": {"tokenizer": "kim", "num_iterations": 3, "num_attentions": 2},
    "pair": {"pair": True, "tokenizer": "ptb", "lowercase": True, "num_iterations": 1},
    "number": {"target": "number", "tokenizer": "kim", "num_iterations": 2},
    "pair-number": {"pair": True, "target": "number", "tokenizer": "ptb", "num_iterations": 1},
}


def random_run(
    path: Path,
    pair: bool = False,
    tokenizer: str = "whitespace",
    lowercase: bool = False,
    files: bool = False,
    target: str = "class",
    scale: float = 1.0,
    **model: Any,
) -> Path:
    """A run folder as training leaves it, with random weights and batch-norm statistics.

    Args:
        path: the folder to make.
        pair: whether an example is two sentences.
        tokenizer: the name of the tokeniser.
        lowercase: whether words are lower-cased; then `it` is known, which `It` is not.
        files: whether the word vectors are said to come from a file.
        target: what the model says, `class` or `number`.
        scale: of the numbers; those of the data lie from 0 to 4 times this.
        **model: changes of the `ModelConfig`.
    """
    from dsa_keras.config import TrainingConfig
    from dsa_keras.data import Vocabulary
    from dsa_keras.data.word_lookup import TokenizedSentences
    from dsa_keras.datasets import load_dataset, recipe_for
    from dsa_keras.models import Network
    from dsa_keras.runs import Run, RunConfig
    from dsa_keras.runs.weights import weights_file, weights_of

    dataset = load_dataset("demo-nli" if pair else "demo-sentiment", size=150)
    if target == "number":
        dataset = _as_numbers(dataset, path.with_name(f"{path.name}.jsonl"), scale)
    sentences, _ = dataset.inputs.distinct(dataset["train"].texts)
    counts = TokenizedSentences(sentences, tokenizer, lowercase).counts()
    counts |= {"it": 1} if lowercase else {}
    vocabulary = Vocabulary.from_counts({**counts, "good": 1, "bad": 1, "film": 1})
    recipe = recipe_for(dataset, model.pop("encoder", "dsa-single"))
    known = recipe.model.choosable()
    config = recipe.model.replace(
        **{
            "embedding_dropout": 0.3,
            "train_embeddings": False,
            **{name: value for name, value in SMALL.items() if name in known},
            **model,
        },
        objective=dataset.objective,
        inputs=dataset.inputs,
        vocabulary_size=len(vocabulary),
    )
    origin = dataset.origin
    assert origin is not None
    run_config = RunConfig(
        task=dataset.name,
        model=config,
        training=TrainingConfig().replace(tokenizer=tokenizer, lowercase=lowercase),
        data={"data_dir": origin.data_dir, "options": dict(origin.options)},
        vectors={"files": ["vectors.txt"] if files else []},
    )
    rng = np.random.default_rng(3)
    matrix = rng.normal(size=(len(vocabulary), config.embedding_dim)).astype("float32")
    network = Network(config)
    weights = {
        name: value + rng.uniform(0.1, 0.5, value.shape).astype(value.dtype)
        for name, value in weights_of(network).items()
    }
    fixed = None if config.train_embeddings else matrix
    best = weights_file(weights)
    record = {"epoch": 1, f"dev_{config.objective.monitor}": 0.5}
    run = Run(path)
    with run.made(run_config, vocabulary, fixed, force=False):
        run.save_epoch(best, best, [record], "# A run with random weights\n")
    return path


def _as_numbers(dataset: Dataset, path: Path, scale: float) -> Dataset:
    """The data in a file of one's own, whose targets are numbers that the classes stand for."""
    import json

    from dsa_keras.datasets import load_dataset

    pair = dataset.inputs.is_pair

    def row(split: str, text: Any, target: int) -> Mapping[str, Any]:
        sentences = dataset.inputs.sentences(text)
        named = dict(zip(("text", "pair"), sentences, strict=False))
        number = scale * (2 * int(target) + len(sentences[0]) % 3 / 2)
        return {**named, "split": split, "label": number}

    rows = [
        row(name, text, target)
        for name, split in dataset.splits.items()
        for text, target in zip(split.texts, split.targets, strict=True)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    return load_dataset(
        "file",
        path=str(path),
        pair_column="pair" if pair else None,
        split_column="split",
        target="number",
    )


_MADE: dict[str, Case] = {}


def case(factory: Any, name: str) -> Case:
    """The export of one of `CASES`, made at the first call of a test session."""
    if name not in _MADE:
        _MADE[name] = _exported(factory, name)
    return _MADE[name]


def _exported(factory: Any, name: str) -> Case:
    from dsa_keras.export.saved_model import export_saved_model
    from dsa_keras.runs import Run

    folder = factory.mktemp(name)
    run = random_run(folder / "run", **CASES[name])
    exported = export_saved_model(run, folder / "models" / name)
    return Case(run, exported.path, Run(run).config().model.inputs)
