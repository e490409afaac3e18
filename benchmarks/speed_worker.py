"""One measurement of `benchmarks.speed`: reads a job's folder, prints seconds as JSON."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import in_turns

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

Arrays = list[dict[str, np.ndarray]]


class Job:
    """What `benchmarks.speed` wrote."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings = json.loads((folder / "job.json").read_text())

    def batches(self) -> Arrays:
        """The batches in every form."""
        batches: Arrays = [{} for _ in range(self.settings["batches"])]
        with np.load(self.folder / "batches.npz") as file:
            for name, value in file.items():
                number, part = name.split("/")
                batches[int(number)][part] = value
        return batches

    def weights(self, which: str) -> list[np.ndarray]:
        """The `trainable` weights, or all (`weights`)."""
        with np.load(self.folder / f"{which}.npz") as file:
            return list(file.values())

    def texts(self) -> list[str]:
        """The sentences to encode."""
        return json.loads((self.folder / "texts.json").read_text())

    def sentences(self) -> list[np.ndarray]:
        """The sentences to encode as word ids."""
        with np.load(self.folder / "sentences.npz") as file:
            return list(file.values())


def timed(run: Callable[[], Any], warm: Callable[[], Any] | None = None) -> float:
    (warm or run)()
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


# Ours.


def model_config(job: Job) -> Any:
    from dsa_keras.config import ModelConfig

    return ModelConfig.from_dict(job.settings["model"])


def network(job: Job) -> Any:
    from dsa_keras.models import Network

    made = Network(model_config(job))
    made.model.set_weights(job.weights("weights"))
    return made


def padded_inputs(batch: dict[str, np.ndarray], names: tuple[str, ...]) -> Any:
    """What the padded model takes: ids, or for pairs a dictionary of them."""
    ids = {name: batch[f"padded{number}"] for number, name in enumerate(names)}
    return ids if len(ids) > 1 else ids[names[0]]


def ours_training(job: Job, form: str) -> Callable[[], None]:
    """Our training, a step with every batch: what `fit` calls for each, on batches at hand."""
    import tensorflow as tf

    from dsa_keras.datasets import preset
    from dsa_keras.training.optimizers import build_optimizer

    batches, made = job.batches(), network(job)
    model, inputs = made.model, made.inputs.signature
    logits = model(padded_inputs(batches[0], inputs), training=False)
    np.save(job.folder / "logits-ours.npy", logits)
    if form == "packed":
        model = made.packed_model
        names = ("index", "segment_ids", "word_ids")
        feeds = [{name: batch[name] for name in names} for batch in batches]
    else:
        feeds = [padded_inputs(batch, inputs) for batch in batches]
    optimizer = build_optimizer(preset(job.settings["recipe"]).training)
    model.compile(optimizer, made.config.objective.loss(), jit_compile=False)
    examples = [(feed, batch["labels"]) for feed, batch in zip(feeds, batches, strict=True)]
    signature = tf.nest.map_structure(any_size, examples[0])
    dataset = tf.data.Dataset.from_generator(lambda: examples, output_signature=signature)
    dataset = dataset.cache().repeat()
    # Makes the function that trains.
    model.fit(dataset, steps_per_epoch=1, shuffle=False, verbose=0)
    iterator = iter(dataset)

    def epoch() -> None:
        for _ in examples:
            model.train_function(iterator)

    return epoch


def any_size(array: np.ndarray) -> Any:
    import tensorflow as tf

    return tf.TensorSpec([None] * array.ndim, array.dtype)


def ours_encode(job: Job) -> float:
    from dsa_keras.data.vocabulary import Vocabulary
    from dsa_keras.datasets import preset
    from dsa_keras.runs import RunConfig
    from dsa_keras.sentence_model import SentenceModel
    from dsa_keras.text_encoder import TextEncoder

    training = preset(job.settings["recipe"]).training
    config = RunConfig(job.settings["task"], model_config(job), training)
    vocabulary = Vocabulary.load(job.folder / "vocabulary.txt")
    text_encoder = TextEncoder(training.tokenizer, vocabulary, network(job))
    model = SentenceModel(text_encoder, config)
    texts = job.texts()
    return timed(lambda: model.encode(texts))


def bare_products(job: Job) -> Callable[[], None]:
    """The matrix products of a training step of mean length, as often as there are batches."""
    import tensorflow as tf

    from benchmarks.speed import products_per_word

    length = round(job.settings["positions"] / job.settings["batches"])
    shapes = products_per_word(model_config(job))
    operands = [
        (tf.random.normal((length, a)), tf.random.normal((a, b)), tf.random.normal((length, b)))
        for a, b, _ in shapes
    ]

    def step() -> None:
        for (words, kernel, upstream), (_, _, back) in zip(operands, shapes, strict=True):
            tf.matmul(words, kernel)
            tf.matmul(words, upstream, transpose_a=True)
            if back:
                tf.matmul(upstream, kernel, transpose_b=True)

    def steps() -> None:
        for _ in range(job.settings["batches"]):
            step()

    return steps


def step_and_products(job: Job, turns: int = 5) -> dict[str, float]:
    """Our training steps and their bare products, which take turns in this process.

    Within one process a slow minute of the machine slows both.
    """
    runs = {"step_seconds": ours_training(job, "packed"), "products_seconds": bare_products(job)}
    for run in runs.values():
        run()
    return dict(zip(runs, in_turns(list(runs.values()), turns), strict=True))


# PyTorch's.


def torch_model(job: Job) -> Any:
    from benchmarks.torch_dsa import Classifier, copy_weights

    config, vectors = model_config(job), job.weights("weights")[0]
    model = Classifier(
        vectors,
        config.objective.num_outputs,
        config.embedding_dropout,
        config.encoder.dropout,
        config.head.head_dropout,
        config.objective.num_hidden_layers,
        config.inputs.is_pair,
    )
    copy_weights(model, job.weights("trainable"))
    return model


def torch_train(job: Job, form: str, compiled: bool) -> float:
    import torch

    from dsa_keras.datasets import preset

    model, batches = torch_model(job), job.batches()
    recipe = preset(job.settings["recipe"]).training
    ids = [
        [torch.from_numpy(batch[name]) for name in ("padded0", "padded1") if name in batch]
        for batch in batches
    ]
    packed = [
        (
            torch.from_numpy(batch["separated_ids"])[None],
            torch.from_numpy(batch["separated_segments"])[None],
            torch.from_numpy(batch["index"]).long(),
            int(batch["separated_segments"].max()),
        )
        for batch in batches
    ]
    labels = [torch.from_numpy(batch["labels"]).long() for batch in batches]
    model.eval()
    with torch.no_grad():
        logits = model.packed(*packed[0]) if form == "packed" else model(*ids[0])
    np.save(job.folder / "logits-torch.npy", logits)
    model.train()
    call: Callable[..., Any] = model.packed if form == "packed" else model
    if compiled:
        call = torch.compile(call, dynamic=True)
    feeds = packed if form == "packed" else ids
    options = {"lr": recipe.learning_rate, "weight_decay": recipe.l2, "eps": recipe.epsilon}
    weights = [one for one in model.parameters() if one.requires_grad]
    if recipe.optimizer == "adam":
        optimizer: Any = torch.optim.Adam(weights, **options)
    else:
        optimizer = torch.optim.Adadelta(weights, rho=recipe.rho, **options)

    def epoch() -> None:
        for feed, expected in zip(feeds, labels, strict=True):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(call(*feed), expected).backward()
            optimizer.step()

    return timed(epoch)


def torch_encode(job: Job, form: str, compiled: bool) -> float:
    import torch

    from benchmarks.speed import padded
    from dsa_keras.data.word_lookup import Sentences
    from dsa_keras.text_encoder import length_batches

    encoder = torch_model(job).encoder.eval()
    call: Callable[..., Any] = torch.compile(encoder, dynamic=True) if compiled else encoder
    sentences = job.sentences()
    if form == "sorted":
        offsets = np.cumsum([0, *map(len, sentences)])
        order = list(length_batches(Sentences(np.concatenate(sentences), offsets), 256))
    else:
        numbers = np.arange(len(sentences))
        order = [numbers[start : start + 256] for start in range(0, len(numbers), 256)]
    result = np.empty((len(sentences), 600), np.float32)

    def encode(batches: list[np.ndarray]) -> None:
        with torch.inference_mode():
            for which in batches:
                ids = torch.from_numpy(padded([sentences[one] for one in which]))
                result[which] = call(ids).numpy()

    return timed(lambda: encode(order), lambda: encode([*order[:3], order[-1]]))


def main() -> None:
    job, kind = Job(Path(sys.argv[1])), sys.argv[2]
    form = kind.rsplit("-", 1)[1] if "-" in kind else ""
    compiled = "compiled" in kind
    if kind == "step-and-products":
        print(json.dumps(step_and_products(job)))
        return
    if kind == "bare-products":
        seconds = timed(bare_products(job))
    elif kind == "ours-encode":
        seconds = ours_encode(job)
    elif kind.startswith("ours"):
        seconds = timed(ours_training(job, form))
    elif "train" in kind:
        seconds = torch_train(job, form, compiled)
    else:
        seconds = torch_encode(job, form, compiled)
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main()
