"""Two pictures of a search: every candidate at a glance, and the figure against the size."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from dsa_keras.tuning.importance import label
from dsa_keras.tuning.results import Results, Trained

_MOST_LEVELS = 6


def parallel_coordinates(results: Results) -> Figure:
    """An axis per hyper-parameter, a line per candidate, its colour how good it is."""
    trained = sorted(results.trained, key=lambda one: one.merit)
    names = list(dict.fromkeys(name for one in trained for name in one.record.searched))
    figure = Figure(figsize=(1.5 + 1.2 * (len(names) + 1), 4.8), dpi=90, layout="constrained")
    axes = figure.add_subplot()
    heights = [_heights([one.record.searched.get(name) for one in trained]) for name in names]
    title = results.settings.goal.title
    heights.append(_heights([one.figure for one in trained], continuous=True))
    places = list(range(len(heights)))
    scale = Normalize(trained[0].merit, trained[-1].merit)
    colours = colormaps["viridis"]
    for number, one in enumerate(trained):
        # Lines that meet in one value are drawn beside each other.
        shift = 0.05 * (number / max(1, len(trained) - 1) - 0.5)
        line = [points[number] + shift for points, _ in heights[:-1]] + [heights[-1][0][number]]
        best = number == len(trained) - 1
        axes.plot(
            places,
            line,
            color=colours(scale(one.merit)),
            linewidth=2.6 if best else 1.3,
            linestyle="--" if one.is_paper else "-",
            marker="o",
            markersize=3,
            zorder=3 if best else 2,
        )
    for place, (_, ticks) in zip(places, heights, strict=True):
        axes.axvline(place, color="0.75", linewidth=1, zorder=1)
        for height, text in ticks:
            axes.annotate(
                text,
                (place, height),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
                bbox={"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 0.5},
                zorder=4,
            )
    axes.set_xticks(
        places, [*(name.replace("_", "\n") for name in names), title.replace(" ", "\n")]
    )
    axes.set_yticks([])
    axes.set_xlim(-0.2, len(heights) - 0.4)
    axes.spines[:].set_visible(False)
    dashed = " (dashed: the paper's)" if any(one.is_paper for one in trained) else ""
    axes.set_title(f"{len(trained)} candidates on {results.settings.task}{dashed}")
    return figure


def pareto(results: Results) -> Figure:
    """The figure against parameters, and the best that each size can buy."""
    figure = Figure(figsize=(7.2, 4.6), dpi=100, layout="constrained")
    axes = figure.add_subplot()
    front = results.front()
    axes.scatter(*_points(results.trained), color="0.55", s=28, label="candidate", zorder=2)
    axes.step(*_points(front), where="post", color="tab:blue", label="Pareto front", zorder=1)
    axes.scatter(*_points(front), color="tab:blue", s=36, zorder=3)
    for one in front:
        axes.annotate(
            one.record.trial,
            (one.record.parameters, one.figure),
            xytext=(5, 5),
            textcoords="offset points",
            fontsize=8,
        )
    paper = [one for one in results.trained if one.is_paper]
    if paper:
        axes.scatter(
            *_points(paper), marker="*", s=150, color="tab:red", label="the paper's", zorder=4
        )
    budget = results.settings.max_parameters
    if budget is not None:
        axes.axvline(budget, color="tab:red", linewidth=1, linestyle=":", label="budget")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(_thousands))
    axes.xaxis.set_minor_formatter(FuncFormatter(_thousands))
    axes.tick_params(axis="x", which="both", labelsize=8, rotation=30)
    axes.set_xlabel("trainable parameters")
    goal = results.settings.goal
    axes.set_ylabel(f"best {goal.title}")
    name = goal.monitor.name.capitalize()
    axes.set_title(f"{name} against size, {results.settings.task}")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    return figure


def _points(trained: Any) -> tuple[list[int], list[float]]:
    ones: list[Trained] = list(trained)
    return [one.record.parameters for one in ones], [one.figure for one in ones]


def _thousands(value: float, _: Any) -> str:
    return f"{value / 1e6:g} M" if value >= 1e6 else f"{value / 1e3:g} k"


def _heights(
    values: list[Any], *, continuous: bool = False
) -> tuple[np.ndarray, list[tuple[float, str]]]:
    """The place of each value on its axis, NaN where there is none, and what to write there."""
    plain: list[Any] = [tuple(one) if isinstance(one, list) else one for one in values]
    present = sorted({value for value in plain if value is not None}, key=_sorting)
    numbers = all(isinstance(value, int | float) for value in present)
    if numbers and (continuous or len(present) > _MOST_LEVELS):
        low, high = float(present[0]), float(present[-1])
        logarithmic = not continuous and low > 0
        ends = np.log([low, high]) if logarithmic else np.array([low, high])
        numeric = np.array([np.nan if value is None else float(value) for value in plain])
        placed = np.log(numeric) if logarithmic else numeric
        span = (ends[1] - ends[0]) or 1.0
        ticks = [(0.0, f"{low:.3g}"), (1.0, f"{high:.3g}")] if high > low else [(0.0, f"{low:.3g}")]
        return (placed - ends[0]) / span, ticks
    steps = max(1, len(present) - 1)
    places = {value: number / steps for number, value in enumerate(present)}
    points = np.array([np.nan if value is None else places[value] for value in plain])
    return points, [(place, label(value)) for value, place in places.items()]


def _sorting(value: Any) -> tuple[str, Any]:
    kind = "number" if isinstance(value, int | float) else type(value).__name__
    return kind, value
