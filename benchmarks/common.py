"""What every benchmark's result says about where it came from."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dsa_keras.data.batches import Prepared
    from dsa_keras.data.vocabulary import Vocabulary
    from dsa_keras.datasets import Dataset

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"


def provenance() -> dict[str, Any]:
    """The command, the commit and the machine, without names or paths of it."""
    module = getattr(sys.modules["__main__"], "__spec__", None)
    return {
        "command": " ".join(["python -m", module.name if module else "?", *_plain(sys.argv[1:])]),
        "commit": commit(),
        "machine": {"processor": processor(), "cores": os.cpu_count(), "accelerators": "none"},
        "python": platform.python_version(),
        "versions": {
            name: importlib.metadata.version(name) for name in ("tensorflow", "keras", "numpy")
        },
    }


def processor() -> str:
    """The name that the processor gives itself, with its width of vectors where that is told."""
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return platform.processor() or platform.machine()
    told = dict(line.split(":", 1) for line in info.read_text().splitlines() if ":" in line)
    fields = {name.strip(): value.strip() for name, value in told.items()}
    flags = fields.get("flags", "").split()
    widest = next((flag for flag in ("avx512f", "avx2") if flag in flags), "")
    return " ".join(word for word in (fields.get("model name", platform.machine()), widest) if word)


def in_turns(runs: Sequence[Callable[[], Any]], turns: int) -> list[float]:
    """The median seconds of each, all taking turns: a slow minute of the machine slows them all."""
    seconds: list[list[float]] = [[] for _ in runs]
    for _ in range(turns):
        for run, times in zip(runs, seconds, strict=True):
            begin = time.perf_counter()
            run()
            times.append(time.perf_counter() - begin)
    return [statistics.median(times) for times in seconds]


def training_words(dataset: Dataset, tokenizer: str) -> tuple[Vocabulary, Prepared]:
    """The words of the training split, all of them known, and the split as their numbers."""
    from dsa_keras.data.batches import Prepared
    from dsa_keras.data.vocabulary import Vocabulary
    from dsa_keras.data.word_lookup import TokenizedSentences

    split = dataset["train"]
    sentences, index = dataset.inputs.distinct(split.texts)
    tokenized = TokenizedSentences(sentences, tokenizer)
    vocabulary = Vocabulary.from_counts(tokenized.counts())
    return vocabulary, Prepared(tokenized.ids(vocabulary), index, split.targets)


def commit() -> str:
    """The commit of the code."""
    command = ["git", "describe", "--always", "--dirty"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()


def _plain(arguments: list[str]) -> list[str]:
    """Arguments with the folders of this machine taken out of paths."""
    return [f"<{Path(one).name}>" if "/" in one else one for one in arguments]
