"""The figures of `inspect`. Each takes the numbers it shows, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dsa_keras.inspection.measures import AttentionScore, Projection, WordWeight

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DPI = 150
_MARKERS = "o^sDvP*X<>"
_GREY, _BLUE, _ORANGE = "0.6", "#2171b5", "#b35806"
_MAX_CLASSES = 10
_MAX_LETTERS = 24


def weight_vectors_figure(
    projection: Projection,
    labels: np.ndarray,
    class_names: Sequence[str],
    lengths: np.ndarray,
    title: str,
    kind: str = "class",
) -> Figure:
    """Dynamic weight vectors in the plane, beside a static one: by target, and by length.

    Args:
        projection: of the dynamic weight vectors.
        labels: the group of each, such as its class.
        class_names: the groups.
        lengths: number of words of each.
        title: which vectors they are.
        kind: what a target is, in a word.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(12, 5.4), dpi=_DPI)
    figure.suptitle(title, fontsize=13, y=0.975)
    # Fixed places: legend and colour bar lie below the panels, which stay of one size.
    grid = figure.add_gridspec(1, 3, left=0.075, right=0.985, bottom=0.27, top=0.86, wspace=0.08)
    panels: Any = grid.subplots(sharex=True, sharey=True)
    by_label, by_length, static = panels
    x, y = projection.points.T
    for number, name in enumerate(class_names[:_MAX_CLASSES]):
        chosen = labels == number
        by_label.scatter(
            x[chosen],
            y[chosen],
            s=14,
            marker=_MARKERS[number],
            color=_class_color(number, len(class_names)),
            alpha=0.75,
            linewidths=0,
            label=_plain(name),
        )
    rest = labels >= _MAX_CLASSES
    if rest.any():
        by_label.scatter(x[rest], y[rest], s=10, color=_GREY, linewidths=0, label="other classes")
    by_label.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.17),
        ncols=min(3, len(class_names)),
        frameon=False,
        fontsize=9,
        columnspacing=1.2,
        handletextpad=0.3,
    )
    by_label.set_title(f"coloured by the true {kind}")
    shown = by_length.scatter(x, y, s=14, c=lengths, cmap="cividis", alpha=0.8, linewidths=0)
    place = by_length.get_position()
    below = figure.add_axes((place.x0 + 0.1 * place.width, 0.11, 0.8 * place.width, 0.025))
    bar = figure.colorbar(shown, cax=below, orientation="horizontal")
    bar.set_label("words in the sentence")
    bar.locator = MaxNLocator(integer=True)
    by_length.set_title("coloured by sentence length")
    static.scatter([0], [0], s=60, marker="X", color="black")
    static.set_title("a static weight vector")
    static.text(
        0.5,
        0.95,
        f"the same for all {len(x):,} sentences\nspread 0 (dynamic: {projection.spread:.3g})",
        transform=static.transAxes,
        ha="center",
        va="top",
        fontsize=10,
    )
    first, second = (f"{100 * share:.1f} % of the variance" for share in projection.explained)
    for axes in (by_label, by_length, static):
        axes.set_xlabel(f"first component, {first}")
        # Numbers such as -0.075 are wide: of more than these, one would touch the next.
        axes.xaxis.set_major_locator(MaxNLocator(nbins=4))
        axes.grid(color="0.92")
        axes.set_axisbelow(True)
    by_label.set_ylabel(f"second component, {second}")
    return figure


def entropy_figure(entropies: np.ndarray, title: str) -> Figure:
    """Entropy of each attention from iteration to iteration.

    Args:
        entropies: `(iterations, attentions)`, as shares of the entropy of uniform weights.
        title: what was measured.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4.6), dpi=_DPI, layout="constrained")
    figure.suptitle(title, fontsize=12)
    axes = figure.add_subplot()
    steps = np.arange(1, len(entropies) + 1)
    axes.axhline(1, color=_GREY, linestyle="--", linewidth=1)
    attentions = entropies.shape[1]
    for number, values in enumerate(entropies.T):
        axes.plot(
            steps,
            values,
            marker=_MARKERS[number % len(_MARKERS)],
            color=_class_color(number, attentions),
            label=f"attention {number + 1}" if attentions > 1 else "attention",
        )
    axes.plot([], [], color=_GREY, linestyle="--", label="uniform weights")
    low = min(float(entropies.min()), 1.0)
    axes.set_ylim(max(0.0, low - 0.15 * (1 - low) - 0.005), 1 + 0.1 * (1 - low) + 0.005)
    axes.set_xlim(0.8, len(entropies) + 0.2)
    axes.set_xticks(steps)
    axes.set_xlabel("routing iteration")
    axes.set_ylabel("entropy, as a share of uniform weights")
    axes.grid(color="0.92")
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False, fontsize=9)
    return figure


def top_words_figure(ranking: Sequence[Sequence[WordWeight]], title: str) -> Figure:
    """The words that get most weight, a panel of bars for each attention."""
    from matplotlib.figure import Figure

    columns = min(4, len(ranking))
    lines = -(-len(ranking) // columns)
    tallest = max((len(words) for words in ranking), default=1)
    figure = Figure(
        figsize=(max(6.0, 3.2 * columns), lines * (1.1 + 0.26 * max(tallest, 3)) + 0.6),
        dpi=_DPI,
        layout="constrained",
    )
    figure.suptitle(title, fontsize=13)
    panels = figure.subplots(lines, columns, sharex=True, squeeze=False)
    for number, axes in enumerate(panels.flat):
        if number >= len(ranking):
            axes.axis("off")
            continue
        _bars(axes, ranking[number])
        axes.set_title(f"attention {number + 1}" if len(ranking) > 1 else "attention", fontsize=11)
    figure.supxlabel("mean weight in multiples of the uniform weight (dashed)", fontsize=10)
    return figure


def score_figure(scores: Sequence[tuple[str, AttentionScore]], title: str) -> Figure:
    """Share of weight on the words that decide, with 95 % intervals, against uniform weights.

    Args:
        scores: what to call each model, and its score; the first is the one inspected.
        title: what was measured.
    """
    from matplotlib.figure import Figure

    bars = [("uniform weights", scores[0][1].uniform, 0.0, _GREY)]
    for (name, score), color in zip(scores, (_BLUE, _ORANGE), strict=False):
        attentions = score.by_iteration.shape[1]
        if attentions > 1:
            bars += [
                (f"{name}, attention {number + 1}", float(value), float(error), color)
                for number, (value, error) in enumerate(
                    zip(score.by_iteration[-1], score.error, strict=True)
                )
            ]
        mean = f"{name}, mean of {attentions}" if attentions > 1 else name
        bars.append((mean, score.mean, score.mean_error, color))
    names, values, errors, colors = zip(*bars, strict=True)
    figure = Figure(figsize=(8, 1.5 + 0.42 * len(bars)), dpi=_DPI, layout="constrained")
    figure.suptitle(title, fontsize=12)
    axes = figure.add_subplot()
    places = np.arange(len(bars))
    axes.barh(places, values, xerr=1.96 * np.array(errors), color=colors, height=0.7, capsize=3)
    axes.axvline(scores[0][1].uniform, color="0.3", linestyle="--", linewidth=1)
    for place, value, error in zip(places, values, errors, strict=True):
        axes.annotate(
            f"{100 * value:.1f} %",
            (value + 1.96 * error, place),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
        )
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    axes.set_xlim(
        0, min(1.15, 1.18 * max(v + 1.96 * e for v, e in zip(values, errors, strict=True)))
    )
    axes.set_xlabel("share of the weight on the words that decide the label")
    return figure


def _bars(axes: Axes, words: Sequence[WordWeight]) -> None:
    if not words:
        axes.text(0.5, 0.5, "no word is frequent enough", ha="center", transform=axes.transAxes)
        axes.set_yticks([])
        return
    places = np.arange(len(words))
    axes.barh(places, [one.lift for one in words], color=_BLUE, height=0.75)
    axes.axvline(1, color="0.3", linestyle="--", linewidth=1)
    axes.set_yticks(places, [f"{_plain(one.word)}  ({one.count})" for one in words], fontsize=9)
    axes.invert_yaxis()


def _plain(text: str) -> str:
    """A name as it is: not too long, and no mathematics between dollar signs."""
    text = text if len(text) <= _MAX_LETTERS else text[: _MAX_LETTERS - 1] + "…"
    return text.replace("$", r"\$")


def _class_color(number: int, count: int) -> tuple[float, ...]:
    """Colours along cividis, which keep their order for colour-blind people and in grey."""
    from matplotlib import colormaps

    # The yellow end is hard to see on white.
    return colormaps["cividis"](0.85 * number / max(count - 1, 1))
