"""How time and memory grow: with sentences, with their length, with attentions and iterations.

    python -m benchmarks.scaling [--series length iterations] [--turns 15] [--write]

Single DSA of the paper's size with random weights; the words are generated, so nothing is needed.

- sentences: `encode` of distinct sentences of 3 to 20 words, read one after another, vectors thrown
  away as they come.
- length: a training step of 16 sentences of so many words.
- attentions m and iterations r: a training step of 128 sentences of 10 words.

Times of training steps are taken in one process for all points of a series, which take turns, so
that a slow minute of the machine slows them all; the median counts. Peak memory is that of a
process for each point. What a process needs before its first step (the program, the model, the
compiled graph) is in its memory and not in its time. `--write` leaves `results/scaling.json` and
the plot; series that are not measured stay in it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.common import RESULTS, ROOT, in_turns, provenance
from dsa_keras.datasets import preset
from dsa_keras.files import write_json, written_aside
from dsa_keras.progress import progress_bar

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

PICTURE = ROOT / "docs" / "images" / "scaling.png"
WORDS = 10_000

SERIES: dict[str, tuple[int, ...]] = {
    "sentences": (10_000, 30_000, 100_000, 300_000, 1_000_000),
    "length": (10, 30, 100, 200, 300, 500, 700, 1000),
    "attentions": tuple(range(1, 9)),
    "iterations": tuple(range(1, 9)),
}
"""What grows, and the points that are measured."""

TITLES = {
    "sentences": "sentences encoded",
    "length": "words in each of 16 sentences, training step",
    "attentions": "attentions m, training step",
    "iterations": "iterations r, training step",
}


def sentences(count: int) -> Iterator[str]:
    """Distinct sentences of generated words."""
    random = np.random.default_rng(0)
    while count > 0:
        size = min(count, 10_000)
        for length in random.integers(3, 21, size):
            yield " ".join(f"w{word}" for word in random.integers(1, WORDS, length))
        count -= size


def encode_seconds(count: int) -> float:
    """The time to encode so many sentences from an iterator."""
    from dsa_keras.data.vocabulary import Vocabulary
    from dsa_keras.models import Network
    from dsa_keras.runs import RunConfig
    from dsa_keras.sentence_model import SentenceModel
    from dsa_keras.text_encoder import TextEncoder

    recipe = preset("sst2")
    vocabulary = Vocabulary.from_counts({f"w{number}": 1 for number in range(1, WORDS)})
    config = recipe.model.replace(vocabulary_size=len(vocabulary))
    text_encoder = TextEncoder(recipe.training.tokenizer, vocabulary, Network(config))
    model = SentenceModel(text_encoder, RunConfig("sst2", config, recipe.training))
    for _ in model.encode(sentences(2000)):
        pass
    begin = time.perf_counter()
    encoded = sum(1 for _ in model.encode(sentences(count)))
    assert encoded == count
    return time.perf_counter() - begin


def training_step(what: str, value: int) -> Callable[[], Any]:
    """A training step on packed sentences of one length, compiled and run once."""
    import tensorflow as tf

    from dsa_keras.models import Network
    from dsa_keras.training.optimizers import build_optimizer

    rows, length = (16, value) if what == "length" else (128, 10)
    change = {} if what == "length" else {f"num_{what}": value}
    recipe = preset("sst2")
    config = recipe.model.replace(vocabulary_size=WORDS, **change)
    packed = Network(config).packed_model
    packed.compile(build_optimizer(recipe.training), config.objective.loss(), jit_compile=False)
    random = np.random.default_rng(0)
    inputs = {
        "word_ids": tf.constant(random.integers(2, WORDS, (1, rows * length)), tf.int32),
        "segment_ids": tf.constant(np.repeat(np.arange(1, rows + 1), length)[None], tf.int32),
        "index": tf.range(rows),
    }
    labels = tf.constant(random.integers(0, 2, rows), tf.int32)
    packed.train_on_batch(inputs, labels)
    return lambda: packed.train_on_batch(inputs, labels)


def step_seconds(what: str, values: Sequence[int], turns: int) -> list[float]:
    """The median time of a training step for each value, the values taking turns."""
    return in_turns([training_step(what, value) for value in values], turns)


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(what: str, values: Sequence[int], turns: int) -> list[dict[str, float]]:
    """Points of a series, in this process: the peak is that of all of them."""
    if what == "sentences":
        seconds = [encode_seconds(value) for value in values]
    else:
        seconds = step_seconds(what, values, turns)
    return [{"seconds": one, "peak_mb": peak_mb()} for one in seconds]


def line(points: list[dict[str, float]], name: str) -> dict[str, float]:
    """The straight line through the points by least squares, and how much of them it explains."""
    x, y = (np.array([point[key] for point in points]) for key in ("value", name))
    slope, start = np.polyfit(x, y, 1)
    rest, spread = np.sum((y - slope * x - start) ** 2), np.sum((y - y.mean()) ** 2)
    return {"slope": float(slope), "start": float(start), "r2": float(1 - rest / spread)}


def in_process(what: str, values: Sequence[int], turns: int) -> list[dict[str, float]]:
    """What `measured` finds in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.scaling", "--turns", str(turns), "--points", what]
    command += map(str, values)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{what} {values} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(values: dict[str, tuple[int, ...]], turns: int) -> dict[str, Any]:
    """All points with the lines through them."""
    results = {}
    with progress_bar(sum(len(row) for row in values.values()), "measuring", unit=" points") as bar:
        for what, row in values.items():
            points = []
            for value in row:
                points.append({"value": value, **in_process(what, [value], 2)[0]})
                bar.update(1)
            if what != "sentences":
                together = in_process(what, row, turns)
                points = [
                    {**point, "seconds": one["seconds"]}
                    for point, one in zip(points, together, strict=True)
                ]
            lines = {name: line(points, name) for name in ("seconds", "peak_mb")}
            results[what] = {"points": points, **lines}
    return results


def draw(results: dict[str, Any]) -> None:
    """Time and memory of every series, with the line through them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 5.5), dpi=100, layout="constrained")
    axes = figure.subplots(2, len(results))
    for column, (what, result) in enumerate(results.items()):
        x = np.array([point["value"] for point in result["points"]])
        milliseconds = what != "sentences"
        for row, (name, scale, unit) in enumerate(
            (("seconds", 1000, "ms") if milliseconds else ("seconds", 1, "s"), ("peak_mb", 1, "MB"))
        ):
            place, fit = axes[row, column], result[name]
            y = scale * np.array([point[name] for point in result["points"]])
            place.plot(x, scale * (fit["start"] + fit["slope"] * x), color="0.7", zorder=1)
            place.scatter(x, y, s=22, color="tab:blue" if row == 0 else "tab:orange", zorder=2)
            place.set_ylim(bottom=0, top=1.15 * y.max())
            place.set_ylabel(f"{'time' if row == 0 else 'peak memory'}, {unit}")
            place.grid(alpha=0.3)
            if row == 0:
                place.set_title(f"$R^2$ of the line: {fit['r2']:.4f}", fontsize=9)
            else:
                place.set_xlabel(TITLES[what], fontsize=9)
            place.ticklabel_format(style="plain")
            if what == "sentences":
                ticks = np.linspace(0, x.max(), 3)
                place.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks])
    with written_aside(PICTURE) as aside:
        figure.savefig(aside, format="png")


def report(results: dict[str, Any]) -> str:
    """Every series in a few lines."""
    lines = []
    for what, result in results.items():
        lines.append(f"{TITLES[what]}: R2 {result['seconds']['r2']:.4f}")
        for point in result["points"]:
            lines.append(
                f"  {point['value']:>9,}  {point['seconds']:9.3f} s  {point['peak_mb']:6.0f} MB"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--series", nargs="+", choices=tuple(SERIES), default=list(SERIES))
    parser.add_argument("--turns", type=int, default=15, help="steps measured for each point")
    parser.add_argument("--write", action="store_true", help="write the results and the plot")
    parser.add_argument("--points", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.points:
        what, *values = options.points
        print(json.dumps(measured(what, [int(value) for value in values], options.turns)))
        return
    results = measure({what: SERIES[what] for what in options.series}, options.turns)
    print(report(results))
    if options.write:
        path = RESULTS / "scaling.json"
        known = json.loads(path.read_text()) if path.exists() else {}
        known |= {what: {"provenance": provenance(), **one} for what, one in results.items()}
        write_json(path, known)
        draw({what: known[what] for what in SERIES if what in known})


if __name__ == "__main__":
    main()
