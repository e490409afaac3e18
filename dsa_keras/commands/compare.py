"""`compare`: one table of several runs; runs that differ in the seed only are one row."""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsa_keras.command_line import example
from dsa_keras.errors import RunError
from dsa_keras.options import add_import_option
from dsa_keras.runs import Run

if TYPE_CHECKING:
    from dsa_keras.objectives.monitor import Monitor
    from dsa_keras.runs import RunConfig

_EXAMPLE = """
dsa-keras compare runs/sst2-seed* runs/sst2-bilstm-seed* --markdown
"""

_HEADER = ("run", "task", "encoder", "seeds", "parameters", "best epoch")
_NUMBERS_FROM = 3
"""The columns from here on are aligned to the right."""


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "compare",
        help="one table of several runs",
        description="One row per run; runs that differ in the seed only share a row with mean and\n"
        "standard deviation. The test figure is there for runs that `evaluate` has scored with\n"
        "the weights they have now. The parameters are those that are trained.",
        epilog=example(_EXAMPLE),
    )
    parser.set_defaults(run=run)
    parser.add_argument("run_dirs", metavar="RUN", nargs="+", type=Path, help="folders of runs")
    add_import_option(parser)
    parser.add_argument("--markdown", action="store_true", help="a Markdown table")


def run(args: argparse.Namespace) -> None:
    """Prints the table."""
    groups: dict[str, list[_Figures]] = {}
    for path in dict.fromkeys(args.run_dirs):
        figures = _figures(path)
        groups.setdefault(figures.settings, []).append(figures)
    names = {group[0].figures for group in groups.values()}
    dev, test = (f" {name}" for name in names.pop()) if len(names) == 1 else ("", "")
    header = (*_HEADER, f"dev{dev}", f"test{test}", "words/s")
    rows = [header, *(_row(group, name_figures=not dev) for group in groups.values())]
    print(_markdown(rows) if args.markdown else _text(rows))


@dataclass(frozen=True)
class _Figures:
    """What the table needs of a run; `settings` are equal for runs of one row."""

    name: str
    settings: str
    config: RunConfig
    parameters: int
    best_epoch: int
    dev: float
    test: float | None
    words_per_second: float

    @property
    def figures(self) -> tuple[str, str]:
        """The figure that chose the epoch, and that of the test split, which has no loss."""
        monitor = self.config.monitor
        return monitor.name, monitor.of_evaluations.replace("_", "-")


def mean_and_deviation(values: Sequence[float], digits: int = 4) -> str:
    """The mean, and the standard deviation of a sample if there is more than one value."""
    mean = f"{statistics.fmean(values):,.{digits}f}"
    return f"{mean} ± {statistics.stdev(values):,.{digits}f}" if len(values) > 1 else mean


def _figures(path: Path) -> _Figures:
    one = Run(path)
    config = one.config()
    best, monitor = one.best(config), config.monitor
    return _Figures(
        name=path.name or str(path),
        settings=_settings(config),
        config=config,
        parameters=one.num_parameters(),
        best_epoch=best["epoch"],
        dev=best[monitor.key],
        test=_test_figure(one, monitor),
        words_per_second=statistics.fmean(
            record["train_words_per_second"] for record in one.records()
        ),
    )


def _settings(config: RunConfig) -> str:
    """All that was chosen, without the seed."""
    training = {**config.training.to_dict(), "seed": None}
    data = {name: config.data.get(name) for name in ("examples", "fingerprint")}
    chosen = [config.task, config.model.to_dict(), training, data, config.vector_files]
    return json.dumps([*chosen, config.options], sort_keys=True)


def _test_figure(one: Run, monitor: Monitor) -> float | None:
    """The figure of the test split, if it is one of the weights that are there now."""
    values, file = one.evaluation("test"), one.evaluation_file("test")
    if values is None:
        if file.exists():
            print(
                f"{file}: the run has other weights by now, so it is left out. Make it again with "
                "evaluate",
                file=sys.stderr,
            )
        return None
    figure = values.get(monitor.of_evaluations)
    if not isinstance(figure, int | float):
        raise RunError(
            f"it has no {monitor.of_evaluations}", where=file, hint="Make it again with evaluate"
        )
    return float(figure)


def _row(group: Sequence[_Figures], *, name_figures: bool) -> tuple[str, ...]:
    names = list(dict.fromkeys(re.sub(r"-seed\d+$", "", one.name) for one in group))
    first = group[0]
    dev, test = (f"{name} " if name_figures else "" for name in first.figures)
    tested = [one.test for one in group if one.test is not None]
    missing = f" ({len(tested)} of {len(group)})" if 0 < len(tested) < len(group) else ""
    return (
        first.name if len(group) == 1 else names[0],
        first.config.task,
        first.config.model.encoder.name,
        str(len(group)),
        f"{first.parameters:,}",
        mean_and_deviation([one.best_epoch for one in group], 0 if len(group) == 1 else 1),
        dev + mean_and_deviation([one.dev for one in group]),
        test + mean_and_deviation(tested) + missing if tested else "-",
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
