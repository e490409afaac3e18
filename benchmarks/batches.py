"""Which form of a batch trains fastest: padded random batches, length buckets, packed batches.

    python -m benchmarks.batches --data-dir DIR [--steps 20] [--repetitions 3] [--write]

The same network (single DSA with the paper's recipe) takes whole training steps on real SST phrases
and SNLI pairs in each form, in turns; medians are compared. `share` is real words over all
positions. The last part shows that packing changes nothing but the speed: the losses of an epoch of
packed batches and one of padded batches of the same examples, from the same weights, without
dropout. Training turns rounding into visible differences within some batches, so there is a
control: the same padded batches with three more empty positions.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from benchmarks.common import RESULTS, provenance, training_words
from dsa_keras.config import Recipe
from dsa_keras.data.batches import Prepared, packed_batches
from dsa_keras.datasets import load_dataset, preset
from dsa_keras.files import write_json
from dsa_keras.inputs import Inputs
from dsa_keras.models import Network
from dsa_keras.training.optimizers import build_optimizer

Batch = tuple[Any, np.ndarray, int, int]
"""Inputs, labels, real words, positions."""


def padded(
    prepared: Prepared, inputs: Inputs, batch_size: int, *, buckets: bool
) -> Iterator[Batch]:
    """Random batches padded to their longest sentence, or batches of sentences of one length."""
    order = np.random.default_rng(0).permutation(len(prepared))
    lengths = prepared.sentences.lengths[prepared.index]
    if buckets:
        key = lengths if lengths.ndim == 1 else lengths.sum(axis=1)
        order = order[np.argsort(key[order], kind="stable")]
    starts = np.arange(0, len(order), batch_size)
    for start in np.random.default_rng(1).permutation(starts):
        chosen = order[start : start + batch_size]
        index = prepared.index[chosen]
        columns = index.reshape(-1, inputs.count).T
        ids = [prepared.sentences.padded(column) for column in columns]
        fed = dict(zip(inputs.signature, ids, strict=True)) if len(ids) > 1 else ids[0]
        words = int(sum((one > 0).sum() for one in ids))
        yield fed, prepared.targets[chosen], words, sum(one.size for one in ids)


def packed(prepared: Prepared, batch_size: int) -> Iterator[Batch]:
    """The form that the package trains with."""
    for inputs, labels in packed_batches(prepared, batch_size, seed=0):
        ids = inputs["word_ids"].numpy()
        words = int((ids > 0).sum())
        yield inputs, labels.numpy(), words, ids.size


def first(batches: Iterator[Batch], count: int) -> list[Batch]:
    return [batch for _, batch in zip(range(count), batches, strict=False)]


def seconds(model: keras.Model, batches: list[Batch]) -> float:
    begin = time.perf_counter()
    for inputs, labels, _, _ in batches:
        model.train_on_batch(inputs, labels)
    return time.perf_counter() - begin


def compiled(model: keras.Model, recipe: Recipe, optimizer: Any = None) -> keras.Model:
    optimizer = optimizer or build_optimizer(recipe.training)
    model.compile(optimizer, recipe.model.objective.loss(), jit_compile=False)
    return model


def measure(task: str, data_dir: str | None, steps: int, repetitions: int) -> dict[str, Any]:
    """Words per second of each form on one task."""
    recipe = preset(task)
    dataset = load_dataset(task, data_dir)
    vocabulary, prepared = training_words(dataset, recipe.training.tokenizer)
    config = recipe.model.replace(vocabulary_size=len(vocabulary))
    size, inputs = recipe.training.batch_size, config.inputs
    forms: dict[str, Callable[[], Iterator[Batch]]] = {
        "padded": lambda: padded(prepared, inputs, size, buckets=False),
        "buckets": lambda: padded(prepared, inputs, size, buckets=True),
        "packed": lambda: packed(prepared, size),
    }
    result: dict[str, Any] = {}
    ready = {}
    for name, make in forms.items():
        network = Network(config)
        model = compiled(network.packed_model if name == "packed" else network.model, recipe)
        batches = first(make(), steps)
        seconds(model, batches)  # every shape is traced before the clock starts
        words = sum(batch[2] for batch in batches)
        result[name] = {"share": words / sum(batch[3] for batch in batches), "words_per_second": []}
        ready[name] = (model, batches, words)
    for _ in range(repetitions):
        for name, (model, batches, words) in ready.items():
            result[name]["words_per_second"].append(round(words / seconds(model, batches)))
    for row in result.values():
        row["median_words_per_second"] = statistics.median(row["words_per_second"])
    begin = time.perf_counter()
    rows = [(words, positions) for _, _, words, positions in packed(prepared, size)]
    result["pipeline"] = {
        "batches_per_second": len(rows) / (time.perf_counter() - begin),
        "batches": len(rows),
        "distinct_lengths": len({length for _, length in rows}),
        "share_of_an_epoch": sum(words for words, _ in rows) / sum(length for _, length in rows),
    }
    return result


def same_loss(task: str, data_dir: str | None, **options: Any) -> dict[str, Any]:
    """Losses of an epoch on sentences, packed and padded, same examples, no dropout."""
    recipe = preset(task)
    size = recipe.training.batch_size
    dataset = load_dataset(task, data_dir, **options)
    vocabulary, prepared = training_words(dataset, recipe.training.tokenizer)
    config = recipe.model.replace(
        vocabulary_size=len(vocabulary), embedding_dropout=0.0, dropout=0.0, head_dropout=0.0
    )
    losses = {}
    for form in ("packed", "padded", "padded by 3 more"):
        keras.utils.set_random_seed(0)
        network = Network(config)
        model = network.packed_model if form == "packed" else network.model
        compiled(model, recipe, keras.optimizers.SGD(0.01))
        total = []
        for inputs, labels in packed_batches(prepared, size, seed=0):
            extra = 3 if form == "padded by 3 more" else 0
            fed: Any = inputs if form == "packed" else _unpacked(inputs, extra)
            total.append(float(model.train_on_batch(fed, labels)))
            model.reset_metrics()
        losses[form] = np.array(total)
    return {
        form: {
            "mean": float(values.mean()),
            "first_batches": values[:3].tolist(),
            "largest_difference_from_padded": float(np.abs(values - losses["padded"]).max()),
        }
        for form, values in losses.items()
    }


def _unpacked(inputs: dict[str, Any], extra: int) -> np.ndarray:
    ids, segments = inputs["word_ids"].numpy()[0], inputs["segment_ids"].numpy()[0]
    sentences = [ids[segments == number] for number in range(1, segments.max() + 1)]
    padded = tf.ragged.constant([sentence.tolist() for sentence in sentences]).to_tensor().numpy()
    return np.pad(padded[inputs["index"].numpy()], ((0, 0), (0, extra)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", help="folder with SST and SNLI; demo tasks need none")
    parser.add_argument("--tasks", nargs="+", default=["sst2", "sst5", "snli"])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="write results/batches.json")
    options = parser.parse_args()
    result: dict[str, Any] = {"provenance": provenance()}
    for task in options.tasks:
        result[task] = measure(task, options.data_dir, options.steps, options.repetitions)
        for form in ("padded", "buckets", "packed"):
            row = result[task][form]
            speed = row["median_words_per_second"]
            print(f"{task} {form:8} {speed:8,.0f} words/s, share {row['share']:.3f}", flush=True)
        print(task, result[task]["pipeline"], flush=True)
    if options.data_dir:
        losses = same_loss("sst2", options.data_dir, phrases=False)
    else:
        losses = same_loss("demo-sentiment", None, size=600)
    result["losses_of_an_epoch"] = losses
    print(result["losses_of_an_epoch"])
    if options.write:
        write_json(Path(RESULTS) / "batches.json", result)


if __name__ == "__main__":
    main()
