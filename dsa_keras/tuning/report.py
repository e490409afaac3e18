"""`report`: what a search found, as a text, two pictures, logs for TensorBoard and a config."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dsa_keras.errors import RunError
from dsa_keras.files import write_json, write_text, written_aside
from dsa_keras.pictures import figure_png
from dsa_keras.tuning.board import write_board
from dsa_keras.tuning.clock import Clock
from dsa_keras.tuning.goal import Goal
from dsa_keras.tuning.importance import PERMUTATIONS, Importance, importances, label
from dsa_keras.tuning.pictures import parallel_coordinates, pareto
from dsa_keras.tuning.progress import duration
from dsa_keras.tuning.results import Results, Trained, read_results, winner_command, winner_config
from dsa_keras.tuning.settings import SearchFolder


def write_report(folder: SearchFolder, out: Path, top: int) -> str:
    """Writes the report of a search, finished or not, and returns its text.

    Args:
        folder: of the search.
        out: where to write `report.md`, `best.json`, the pictures and `board/`.
        top: how many of the best trials to list.
    """
    results = read_results(folder)
    if not results.trained:
        why = (
            f" Trial {results.failed[-1][0]} failed: {results.failed[-1][1]}"
            if (results.failed)
            else ""
        )
        raise RunError(
            "no trial has been trained to its end yet",
            where=folder.path,
            hint=f"Go on with the search.{why}",
        )
    figures = {"parallel": parallel_coordinates(results), "pareto": pareto(results)}
    for name, figure in figures.items():
        with written_aside(out / f"{name}.png") as aside:
            aside.write_bytes(figure_png(figure))
    write_board(out / "board", results, figures)
    write_json(out / "best.json", winner_config(results.trained[0]))
    text = report_text(results, out, Clock(folder.clock_file, None).before, top)
    write_text(out / "report.md", text)
    return text


def report_text(results: Results, out: Path, seconds: float, top: int) -> str:
    """The report as Markdown."""
    settings, goal, epochs = results.settings, results.settings.goal, results.same_epochs
    found = importances(
        [one.record.searched for one in results.trained],
        [one.figure_within(epochs) for one in results.trained],
    )
    sections = [
        f"# Search on {settings.task}: {settings.tuner} over the space `{settings.space}`",
        _overview(results, seconds),
        f"## The best {min(top, len(results.trained))} of {len(results.trained)} candidates",
        _best_table(results.trained[:top], goal),
        "## What mattered",
        _method(results),
        _importance_table(found, goal),
        "## The paper's choices",
        _paper(results),
        "## Pictures",
        f"![every candidate](parallel.png)\n\n![{goal.monitor.name} against size](pareto.png)",
        "## The winner",
        f"Trial {results.trained[0].record.trial}. This trains it again:",
        f"```sh\n{winner_command(settings, out / 'best.json')}\n```",
        f"For TensorBoard (HParams and pictures):\n\n```sh\ntensorboard --logdir {out}/board\n```",
    ]
    if results.failed:
        lines = [f"- {trial}: {reason}" for trial, reason in results.failed]
        sections += ["## Failed trials", "\n".join(lines)]
    return "\n\n".join(sections) + "\n"


def _overview(results: Results, seconds: float) -> str:
    settings = results.settings
    parts = [f"{len(results.trained)} candidates trained to their end"]
    if results.failed:
        parts.append(f"{len(results.failed)} failed")
    if results.infeasible:
        parts.append(
            f"{results.infeasible} over the budget of {settings.max_parameters:,} parameters and "
            "not trained"
        )
    if results.unfinished:
        parts.append(f"{len(results.unfinished)} not finished and not ranked")
    fixed = ", ".join(f"{name} {label(value)}" for name, value in settings.fixed.items())
    return (
        f"{', '.join(parts)}; {duration(seconds)} of searching, at most {settings.epochs} epochs "
        f"each, seed {settings.seed}.{f' Fixed: {fixed}.' if fixed else ''} A score is the "
        f"{settings.goal.title} of the best epoch: chosen as the best of many, the first of them "
        "flatters."
    )


def _best_table(trained: Sequence[Trained], goal: Goal) -> str:
    names = list(dict.fromkeys(name for one in trained for name in one.record.searched))
    rows = [
        [
            one.record.trial + (" (paper's)" if one.is_paper else ""),
            f"{one.figure:.4f}",
            f"{one.outcome.best_epoch} of {one.outcome.epochs}",
            f"{one.record.parameters:,}",
            *(label(one.record.searched.get(name, "")) for name in names),
        ]
        for one in trained
    ]
    return _table(["trial", goal.title, "best epoch", "parameters", *names], rows)


def _method(results: Results) -> str:
    return (
        f"Method: the {len(results.trained)} candidates are compared by their best "
        f"{results.settings.goal.title} within the first {results.same_epochs} epoch(s), which all "
        "of them had. They are grouped "
        "by the value of one hyper-parameter at a time (by thirds, if it has many values); *share* "
        "is the part of the variance that lies between the groups (epsilon squared, not below 0), "
        f"*chance* how often {PERMUTATIONS} random deals of the figures explain as much. "
        "Effects that need two hyper-parameters together are not seen."
    )


def _importance_table(found: Sequence[Importance], goal: Goal) -> str:
    rows = [
        [
            one.name,
            "-" if one.share is None else f"{one.share:.2f}",
            "-" if one.chance is None else f"{one.chance:.3f}",
            str(one.trials),
            ", ".join(f"{group.label}: {group.mean:.4f} ({group.trials})" for group in one.groups),
        ]
        for one in found
    ]
    return _table(
        ["hyper-parameter", "share", "chance", "trials", f"mean {goal.title} by value (trials)"],
        rows,
    )


def _paper(results: Results) -> str:
    paper = next((one for one in results.trained if one.is_paper), None)
    if paper is None:
        return "The paper's own candidate was not trained to its end in this search."
    best = results.trained[0]
    sentences = [
        f"The paper's own candidate is trial {paper.record.trial}: "
        f"{paper.goal.title} {paper.figure:.4f} in {paper.outcome.epochs} epochs. The best reached "
        f"{best.figure:.4f} in {best.outcome.epochs} epochs."
    ]
    for epochs in sorted({results.same_epochs, len(paper.epochs)}):
        rivals = [one for one in results.trained if len(one.epochs) >= epochs]
        own = paper.figure_within(epochs)
        better = paper.goal.monitor.better
        place = 1 + sum(better(one.figure_within(epochs), own) for one in rivals)
        sentences.append(
            f"Of the {len(rivals)} candidates with at least {epochs} epoch(s), compared within "
            f"these, it has place {place} with {own:.4f}."
        )
    return " ".join(sentences)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in [head, *rows]]
    lines.insert(1, "|" + "---|" * len(head))
    return "\n".join(lines)
