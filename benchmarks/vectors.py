"""How fast `load_vectors` reads a file of the shape of GloVe 840B, and in how much memory.

    python -m benchmarks.vectors [--lines 2200000] [--dimension 300] [--write]

The yardstick is the mere iteration over the lines of the file, `for line in open(path, "rb")`, with
nothing done to them. Both are run in turns, each in a process of its own, and the medians are
compared: by the clock, and by processor time, which other jobs on the machine disturb less. The
target is 60% of the speed of the yardstick, and at most 300 MB above the result. The file is made
for the run and deleted after it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.common import RESULTS, provenance
from dsa_keras.data.vectors import load_vectors
from dsa_keras.files import write_json

RESULT = RESULTS / "vectors.json"


def generate(path: Path, lines: int, dimension: int) -> None:
    """Writes distinct words, some not ASCII, a few with spaces; the numbers repeat after 1000."""
    random = np.random.default_rng(0)
    blocks = [
        " ".join(f"{value:.5g}" for value in random.normal(0, 0.4, dimension)) for _ in range(1000)
    ]
    with path.open("w", encoding="utf-8") as file:
        for line in range(lines):
            word = _word(line)
            file.write(f"{word} {blocks[line % 1000]}\n")


def _word(line: int) -> str:
    if line % 50_000 == 49_999:
        return f". . {line}x"
    return f"wörd{line}" if line % 20 == 19 else f"word{line}"


def wanted_words(lines: int, vocabulary: int) -> list[str]:
    """Nine in ten are in the file, one of those nine in upper case, and one in ten is not."""
    step = max(1, lines // vocabulary)
    words = [_word(min(number * step, lines - 1)) for number in range(vocabulary)]
    for number in range(0, vocabulary, 10):
        words[number] = f"nowhere{number}"
        if number + 1 < vocabulary:
            words[number + 1] = words[number + 1].upper()
    return words


def _now() -> np.ndarray:
    return np.array([time.perf_counter(), time.process_time()])


def iterate(path: Path, buffering: int) -> np.ndarray:
    begin = _now()
    with path.open("rb", buffering=buffering) as file:
        for _ in file:
            pass
    return _now() - begin


def load(path: Path, words: list[str]) -> tuple[np.ndarray, float, str]:
    """Seconds, megabytes above the result at the peak, and the report."""
    before = _memory("VmRSS")
    begin = _now()
    vectors = load_vectors(path, words, show_progress=False)
    seconds = _now() - begin
    above = _memory("VmHWM") - before - vectors.matrix.nbytes
    return seconds, above / 1e6, vectors.report


def _memory(name: str) -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{name}:")[1].split()[0]) * 1024


def run(lines: int, dimension: int, vocabulary: int, repetitions: int, folder: str) -> dict:
    words = wanted_words(lines, vocabulary)
    times: dict[str, list[np.ndarray]] = {"iterate": [], "iterate_1MiB_buffer": [], "load": []}
    peaks = []
    with tempfile.TemporaryDirectory(dir=folder) as name:
        path = Path(name) / "vectors.txt"
        generate(path, lines, dimension)
        size = path.stat().st_size
        # One process a measurement: the memory peak of a process never goes down again.
        with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
            pool.apply(iterate, (path, -1))  # into the page cache
            for _ in range(repetitions):
                times["iterate"].append(pool.apply(iterate, (path, -1)))
                seconds, above, report = pool.apply(load, (path, words))
                times["load"].append(seconds)
                peaks.append(above)
                times["iterate_1MiB_buffer"].append(pool.apply(iterate, (path, 2**20)))
    medians = {name: np.median(values, axis=0) for name, values in times.items()}
    ratios = {name: medians[name] / medians["load"] for name in times if name != "load"}
    return {
        "provenance": provenance(),
        "lines": lines,
        "dimension": dimension,
        "vocabulary": vocabulary,
        "file_bytes": size,
        "columns": ["by the clock", "processor time"],
        "seconds": {name: np.round(values, 3).tolist() for name, values in times.items()},
        "median_seconds": {name: value.round(3).tolist() for name, value in medians.items()},
        "speed_of_load_against": {name: value.round(3).tolist() for name, value in ratios.items()},
        "peak_megabytes_above_result": round(max(peaks), 1),
        "report": report.splitlines(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=200_000)
    parser.add_argument("--dimension", type=int, default=300)
    parser.add_argument("--vocabulary", type=int, help="words looked for (default: lines / 55)")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where the file is made")
    parser.add_argument("--write", action="store_true", help=f"write {RESULT.name} to results/")
    options = parser.parse_args()
    # 40,000 words for the official 2.2 million lines, and the same share of a shorter file.
    vocabulary = options.vocabulary or max(1, options.lines // 55)
    result = run(options.lines, options.dimension, vocabulary, options.repetitions, options.folder)
    print(json.dumps(result, indent=2, ensure_ascii=False))
    if options.write:
        write_json(RESULT, result)


if __name__ == "__main__":
    main()
