"""`compare`: one table of several runs; runs that differ in the seed only are one row."""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsa_keras.commands.cli import example
from dsa_keras.errors import RunError

if TYPE_CHECKING:
    from dsa_keras.training.run import Run, RunConfig

_EXAMPLE = """
python -m dsa_keras compare runs/sst2-seed* runs/sst2-bilstm-seed* --markdown
"""

_HEADER = (
    "run",
    "task",
    "encoder",
    "seeds",
    "parameters",
    "best epoch",
    "dev accuracy",
    "test accuracy",
    "words/s",
)
_NUMBERS_FROM = 3
"""The columns from here on are aligned to the right."""


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "compare",
        help="one table of several runs",
        description="One row per run; runs that differ in the seed only share a row with mean and\n"
        "standard deviation. Test accuracy is there for runs that `evaluate` has scored. The\n"
        "parameters are those that are trained.",
        epilog=example(_EXAMPLE),
    )
    parser.set_defaults(run=run)
    parser.add_argument("run_dirs", metavar="RUN", nargs="+", type=Path, help="folders of runs")
    parser.add_argument("--markdown", action="store_true", help="a Markdown table")


def run(args: argparse.Namespace) -> None:
    """Prints the table."""
    groups: dict[str, list[_Figures]] = {}
    for path in dict.fromkeys(args.run_dirs):
        figures = _figures(path)
        groups.setdefault(figures.settings, []).append(figures)
    rows = [_HEADER, *(_row(group) for group in groups.values())]
    print(_markdown(rows) if args.markdown else _text(rows))


@dataclass(frozen=True)
class _Figures:
    """What the table needs of a run; `settings` are equal for runs of one row."""

    name: str
    settings: str
    config: RunConfig
    parameters: int
    best_epoch: int
    dev_accuracy: float
    test_accuracy: float | None
    words_per_second: float


def mean_and_deviation(values: Sequence[float], digits: int = 4) -> str:
    """The mean, and the standard deviation of a sample if there is more than one value."""
    mean = f"{statistics.fmean(values):,.{digits}f}"
    return f"{mean} ± {statistics.stdev(values):,.{digits}f}" if len(values) > 1 else mean


def _figures(path: Path) -> _Figures:
    from dsa_keras.training.run import Run

    one = Run(path)
    config, records = one.config(), one.metrics()
    if not records:
        raise RunError("no epoch is finished yet", where=path, hint="Go on with train --resume")
    best = max(records, key=lambda record: record["dev_accuracy"])
    return _Figures(
        name=path.name or str(path),
        settings=_settings(config),
        config=config,
        parameters=_parameters(one),
        best_epoch=best["epoch"],
        dev_accuracy=best["dev_accuracy"],
        test_accuracy=_test_accuracy(path / "evaluation-test.json"),
        words_per_second=statistics.fmean(one["train_words_per_second"] for one in records),
    )


def _settings(config: RunConfig) -> str:
    """All that was chosen, without the seed."""
    training = {**config.training.to_dict(), "seed": None}
    data = {name: config.data.get(name) for name in ("examples", "fingerprint")}
    chosen = [config.task, config.model.to_dict(), training, data, config.vectors.get("files")]
    return json.dumps([*chosen, config.options], sort_keys=True)


def _parameters(one: Run) -> int:
    """Trained parameters, as papers count them: without the moving statistics of batch norm."""
    from dsa_keras.training.weights import load_weights

    return sum(
        math.prod(value.shape)
        for name, value in load_weights(one.best_file).items()
        if "/moving_" not in name
    )


def _test_accuracy(path: Path) -> float | None:
    try:
        return float(json.loads(path.read_text(encoding="utf-8"))["accuracy"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(
            f"cannot be read ({error})", where=path, hint="Make it again with evaluate"
        ) from None


def _row(group: Sequence[_Figures]) -> tuple[str, ...]:
    names = list(dict.fromkeys(re.sub(r"-seed\d+$", "", one.name) for one in group))
    name = group[0].name if len(group) == 1 else names[0]
    tested = [one.test_accuracy for one in group if one.test_accuracy is not None]
    missing = f" ({len(tested)} of {len(group)})" if 0 < len(tested) < len(group) else ""
    return (
        name,
        group[0].config.task,
        group[0].config.model.encoder,
        str(len(group)),
        f"{group[0].parameters:,}",
        mean_and_deviation([one.best_epoch for one in group], 0 if len(group) == 1 else 1),
        mean_and_deviation([one.dev_accuracy for one in group]),
        mean_and_deviation(tested) + missing if tested else "-",
        f"{statistics.fmean(one.words_per_second for one in group):,.0f}",
    )


def _text(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if number < _NUMBERS_FROM else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    rule = ["---" if number < _NUMBERS_FROM else "---:" for number in range(len(rows[0]))]
    return "\n".join([lines[0], "|" + "|".join(rule) + "|", *lines[1:]])
