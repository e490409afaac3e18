"""Training and encoding speed against PyTorch, and against a bare matrix product.

    pip install -r benchmarks/requirements.txt
    python -m benchmarks.speed --data-dir DIR [--tasks sst2 snli] [--repetitions 3] [--write]
    python -m benchmarks.speed --short          (generated sentences, a minute or two: `make bench`)

Single DSA with the paper's recipe, here and in `benchmarks.torch_dsa`, on the same batches with the
same weights: logits are compared first and must agree within 1e-4. Every measurement is a process
of its own (`benchmarks.speed_worker`); the kinds take turns, and medians are compared. A process
goes through all its batches once before the clock starts. Our training step is what Keras's `fit`
calls for each batch, on batches at hand as PyTorch has them. Training is compared with its bare
matrix products twice: in processes of their own like everything else, and in turns within one
process, where a slow minute of the machine slows both. Words are real words, padding does not
count. PyTorch gets word ids; our `encode` starts from text.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import RESULTS, ROOT, processor, provenance, training_words
from dsa_keras.command_line import load_tensorflow
from dsa_keras.config import ModelConfig
from dsa_keras.data.batches import packed_batches
from dsa_keras.datasets import load_dataset, preset
from dsa_keras.files import write_json
from dsa_keras.progress import progress_bar

KINDS = (
    "ours-train-packed",
    "ours-train-padded",
    "torch-train-packed",
    "torch-train-padded",
    "torch-compiled-train-packed",
    "torch-compiled-train-padded",
    "ours-encode",
    "torch-encode-sorted",
    "torch-encode-padded",
    "torch-compiled-encode-sorted",
)
SHORT = ("ours-train-packed", "torch-train-packed", "torch-train-padded")
SHORT += ("ours-encode", "torch-encode-sorted", "torch-encode-padded")

SEPARATOR = 2
"""Empty positions that PyTorch's convolutions need after each packed sentence."""

RATIOS = (
    ("training", "ours-train-packed", "torch-train-padded", 2.0, "PyTorch, padded"),
    ("training", "ours-train-packed", "torch-compiled-train-padded", None, "compiled, padded"),
    ("training", "ours-train-packed", "torch-train-packed", 1.3, "PyTorch, our batches"),
    ("training", "ours-train-packed", "torch-compiled-train-packed", None, "compiled, our batches"),
    ("encoding", "ours-encode", "torch-encode-padded", 3.0, "PyTorch, padded"),
    ("encoding", "ours-encode", "torch-encode-sorted", 1.5, "PyTorch, our batches"),
    ("encoding", "ours-encode", "torch-compiled-encode-sorted", None, "compiled, our batches"),
)
"""What is compared with what, and the least ratio that we want."""


def products_per_word(config: ModelConfig) -> list[tuple[int, int, bool]]:
    """The matrix products of the encoder: features in, features out, gradient by input needed.

    A convolution is one of them, with all parts of its kernel side by side.
    """
    encoder: Any = config.encoder
    d0, d1, d = config.embedding_dim, encoder.first_filters, encoder.filters
    products = []
    for kernel_size in encoder.kernel_sizes:
        products.append((d0, d1, False))
        for number in range(encoder.num_dense_layers):
            products.append((d1 + number * d, kernel_size * d, True))
    dense = len(encoder.kernel_sizes) * (d1 + encoder.num_dense_layers * d)
    products.append((dense, encoder.compressed_units, True))
    products.append((d0, encoder.compressed_units, False))
    products.append((encoder.compressed_units, encoder.num_attentions * encoder.units, True))
    return products


def operations_per_word(config: ModelConfig, *, training: bool) -> int:
    """Floating-point operations of those products for one word."""
    total = 0
    for size_in, size_out, back in products_per_word(config):
        total += 2 * size_in * size_out * ((3 if back else 2) if training else 1)
    return total


def batch_arrays(inputs: dict[str, Any], labels: Any) -> dict[str, np.ndarray]:
    """One batch in every form: packed for us, packed with separators, padded."""
    arrays = {name: value.numpy() for name, value in inputs.items()}
    arrays["labels"] = labels.numpy()
    ids, segments = arrays["word_ids"][0], arrays["segment_ids"][0]
    sentences = [ids[segments == number] for number in range(1, segments.max() + 1)]
    gap = np.zeros(SEPARATOR, np.int32)
    arrays["separated_ids"] = np.concatenate(
        [part for sentence in sentences for part in (sentence, gap)]
    )
    arrays["separated_segments"] = np.concatenate(
        [part for n, one in enumerate(sentences, 1) for part in (np.full(len(one), n), gap)]
    )
    index = arrays["index"]
    for number, column in enumerate(index.T if index.ndim == 2 else [index]):
        chosen = [sentences[one] for one in column]
        arrays[f"padded{number}"] = padded(chosen)
    return arrays


def padded(sentences: list[np.ndarray]) -> np.ndarray:
    rows = np.zeros((len(sentences), max(map(len, sentences))), np.int32)
    for row, sentence in zip(rows, sentences, strict=True):
        row[: len(sentence)] = sentence
    return rows


def write_job(folder: Path, task: str, data_dir: str | None, batches: int, encode: int) -> None:
    """Writes what the workers read: batches, sentences to encode, weights, settings."""
    import keras

    from dsa_keras.models import Network

    paper_task = "sst2" if task == "demo-sentiment" else task
    recipe = preset(paper_task)
    dataset = load_dataset(task, data_dir)
    texts, _ = dataset.inputs.distinct(dataset["train"].texts)
    vocabulary, prepared = training_words(dataset, recipe.training.tokenizer)
    config = recipe.model.replace(vocabulary_size=len(vocabulary))
    pipeline = packed_batches(prepared, recipe.training.batch_size, seed=0).take(batches)
    arrays, words, positions = {}, 0, 0
    for number, (inputs, labels) in enumerate(pipeline):
        for name, value in batch_arrays(inputs, labels).items():
            arrays[f"{number}/{name}"] = value
        words += int((inputs["word_ids"].numpy() > 0).sum())
        positions += inputs["word_ids"].shape[1]
    np.savez(folder / "batches.npz", **arrays)
    chosen = np.random.default_rng(0).permutation(len(texts))[:encode]
    (folder / "texts.json").write_text(json.dumps([texts[one] for one in chosen]))
    ids = [prepared.sentences.padded([one])[0] for one in chosen]
    np.savez(folder / "sentences.npz", *ids)
    keras.utils.set_random_seed(0)
    model = Network(config).model
    np.savez(folder / "weights.npz", *model.get_weights())
    np.savez(folder / "trainable.npz", *(one.numpy() for one in model.trainable_variables))
    vocabulary.save(folder / "vocabulary.txt")
    job = {
        "task": task,
        "recipe": paper_task,
        "model": config.to_dict(),
        "batches": len({name.split("/")[0] for name in arrays}),
        "words": words,
        "positions": positions,
        "words_to_encode": int(sum(map(len, ids))),
    }
    (folder / "job.json").write_text(json.dumps(job))


def run_worker(folder: Path, kind: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.speed_worker", str(folder), kind]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{kind} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def compare_logits(folder: Path) -> float:
    """The largest difference between our logits and PyTorch's."""
    ours, other = (np.load(folder / f"logits-{name}.npy") for name in ("ours", "torch"))
    return float(np.abs(ours - other).max())


def measure(folder: Path, kinds: tuple[str, ...], repetitions: int) -> dict[str, Any]:
    """Medians of every kind, with the spread."""
    job = json.loads((folder / "job.json").read_text())
    config = ModelConfig.from_dict(job["model"])
    seconds: dict[str, list[float]] = {kind: [] for kind in kinds}
    shares: list[dict[str, float]] = []
    apart: list[float] = []
    difference = 0.0
    with progress_bar(
        repetitions * (len(kinds) + 2), f"measuring {job['task']}", unit=" runs"
    ) as bar:
        for _ in range(repetitions):
            for kind in kinds:
                seconds[kind].append(run_worker(folder, kind)["seconds"])
                bar.update(1)
            apart.append(run_worker(folder, "bare-products")["seconds"])
            shares.append(run_worker(folder, "step-and-products"))
            bar.update(2)
    if any(kind.startswith("torch") for kind in kinds):
        difference = compare_logits(folder)
        if difference > 1e-4:
            sys.exit(f"PyTorch's logits differ by {difference}, this is no comparison")
    rows = {}
    for kind, times in seconds.items():
        words = job["words_to_encode"] if "encode" in kind else job["words"]
        rows[kind] = {
            "words_per_second": round(words / statistics.median(times)),
            "of_all_runs": [round(words / one) for one in sorted(times, reverse=True)],
        }
    step = operations_per_word(config, training=True) * job["positions"] / 1e9
    ours, bare = (
        step / statistics.median(one[name] for one in shares)
        for name in ("step_seconds", "products_seconds")
    )
    of_all_runs = sorted(one["products_seconds"] / one["step_seconds"] for one in shares)
    in_processes = None
    if training := seconds.get("ours-train-packed"):
        in_processes = statistics.median(apart) / statistics.median(training)
    return {
        "words": job["words"],
        "positions": job["positions"],
        "batches": job["batches"],
        "sentences_encoded": len(json.loads((folder / "texts.json").read_text())),
        "largest_difference_of_logits": difference,
        "speed": rows,
        "gflops": {
            "training_step": ours,
            "bare_products": bare,
            "share": statistics.median(of_all_runs),
            "of_all_runs": of_all_runs,
            "share_in_processes": in_processes,
            "bare_products_in_processes": [step / one for one in sorted(apart)],
        },
    }


def report(task: str, result: dict[str, Any]) -> str:
    """The result as a table of ratios."""
    lines = [f"{task}: words per second"]
    for kind, row in result["speed"].items():
        low, high = row["of_all_runs"][0], row["of_all_runs"][-1]
        lines.append(f"  {kind:30} {row['words_per_second']:9,}  ({low:,} to {high:,})")
    for what, ours, other, goal, name in RATIOS:
        if ours in result["speed"] and other in result["speed"]:
            speeds = [result["speed"][kind]["words_per_second"] for kind in (ours, other)]
            wanted = f"  goal {goal}" if goal else ""
            lines.append(f"  {what} over {name:24} {speeds[0] / speeds[1]:6.2f}{wanted}")
    rate = result["gflops"]
    lines.append(
        f"  training at {rate['training_step']:.0f} GFLOP/s, bare matrix products "
        f"{rate['bare_products']:.0f}: {rate['share']:.2f} "
        f"({rate['of_all_runs'][0]:.2f} to {rate['of_all_runs'][-1]:.2f})  goal 0.75"
    )
    if share := rate["share_in_processes"]:
        lines.append(f"  the same in processes of their own: {share:.2f}  goal 0.75")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data-dir", help="folder with SST and SNLI")
    parser.add_argument("--tasks", nargs="+", default=["sst2", "snli"])
    parser.add_argument("--batches", type=int, default=30)
    parser.add_argument("--encode", type=int, default=10_000, help="sentences to encode")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--short", action="store_true", help="a quick look on generated sentences")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, help="measure these only")
    parser.add_argument("--eager", action="store_true", help="leave torch.compile out")
    parser.add_argument("--write", action="store_true", help="write to results/speed.json")
    options = parser.parse_args()
    if options.short:
        options.tasks, options.data_dir = ["demo-sentiment"], None
        options.batches, options.encode, options.repetitions = 10, 2000, 1
    elif options.data_dir is None:
        parser.error("--data-dir is missing (or use --short)")
    load_tensorflow()
    for task in options.tasks:
        with tempfile.TemporaryDirectory() as folder:
            write_job(Path(folder), task, options.data_dir, options.batches, options.encode)
            kinds = tuple(options.kinds or (SHORT if options.short else KINDS))
            if options.eager:
                kinds = tuple(kind for kind in kinds if "compiled" not in kind)
            result = measure(Path(folder), kinds, options.repetitions)
        print(report(task, result), flush=True)
        if options.write:
            write_task(f"{task}, {processor()}", {"provenance": provenance(), **result})


def write_task(name: str, result: dict[str, Any]) -> None:
    """Puts a task's result into the file, which keeps those of other tasks and processors."""
    path = RESULTS / "speed.json"
    others = json.loads(path.read_text()) if path.exists() else {}
    write_json(path, {**others, name: result})


if __name__ == "__main__":
    main()
