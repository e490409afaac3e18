"""`inspect`: looks at a sample of sentences and writes figures, numbers and TensorBoard logs.

Of pairs the hypothesis is looked at: it is the sentence whose words decide the label. What a model
cannot show (a static encoder has no dynamic weight vectors, one routing iteration has none before
the last) is left out, and `skipped` says why.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dsa_keras.datasets import Split
from dsa_keras.errors import ConfigError
from dsa_keras.files import folder_written_aside, write_json, written_aside
from dsa_keras.inputs import PAIR, Text
from dsa_keras.inspection import figures
from dsa_keras.inspection.explanation import Explainable
from dsa_keras.inspection.maps import map_figure, map_of
from dsa_keras.inspection.measures import (
    AttentionScore,
    attention_score,
    disagreement,
    entropy,
    mean_entropy,
    principal_components,
    telling_sentences,
    top_words,
)
from dsa_keras.inspection.projector import write_projector
from dsa_keras.inspection.trace import Trace, trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dsa_keras.objectives import Objective


@dataclass(frozen=True)
class Sample:
    """Sentences of a split, chosen at random.

    Attributes:
        texts: the examples.
        sentences: of each the sentence that is looked at.
        targets: of the examples.
        decisive: of each the indices of the words that decide, or None where nobody knows.
        source: what they are, in words.
    """

    texts: list[Text]
    sentences: list[str]
    targets: np.ndarray
    decisive: list[tuple[int, ...]] | None
    source: str


@dataclass(frozen=True)
class Inspection:
    """What `inspect_model` found.

    Attributes:
        numbers: what stands behind the figures, ready for JSON.
        figures: by name.
        skipped: figures that this model or data cannot have, and why.
        vectors: for the projector, by name.
        metadata: columns for the projector.
    """

    numbers: dict[str, Any]
    figures: dict[str, Figure]
    skipped: dict[str, str]
    vectors: dict[str, np.ndarray]
    metadata: dict[str, Sequence[object]]


def sample(split: Split, count: int, seed: int, source: str) -> Sample:
    """Chooses examples at random, all of them if there are not more than `count`."""
    chosen = np.sort(np.random.default_rng(seed).permutation(len(split))[:count])
    texts = [split.texts[number] for number in chosen]
    sentences = [text if isinstance(text, str) else text[PAIR.looked_at] for text in texts]
    decisive = None if split.decisive is None else [split.decisive[number] for number in chosen]
    what = "sentences" if not texts or isinstance(texts[0], str) else "hypotheses"
    source = f"{len(texts):,} {what} of {source}"
    return Sample(texts, sentences, split.targets[chosen], decisive, source)


def inspect_model(
    model: Explainable,
    chosen: Sample,
    *,
    maps: int = 6,
    words: int = 12,
    min_count: int = 5,
    compared: tuple[str, Explainable] | None = None,
    show_progress_bar: bool = False,
) -> Inspection:
    """Computes the figures and the numbers behind them.

    Args:
        model: a model whose encoder attends.
        chosen: the sentences to look at.
        maps: how many sentences the attention maps show.
        words: how many top words are shown for each attention.
        min_count: a top word occurs at least so often.
        compared: name and model whose attention score stands beside that of `model`.
        show_progress_bar: whether to show a bar on a terminal.

    Raises:
        ConfigError: if the encoder has no attention, or there is nothing to score `compared` by.
    """
    from dsa_keras.models.network import check_attends

    check_attends(model.config.model)
    if compared is not None and chosen.decisive is None:
        raise ConfigError(
            "only generated data knows the words that decide, so there is no score to compare",
            hint="Leave --compare out, or inspect a run on demo-sentiment or demo-nli",
        )
    objective = model.objective
    numbers = model.numbers(chosen.texts, show_progress_bar=show_progress_bar)
    answers = [answer.headline() for answer in objective.answers(numbers)]
    traces = trace(model.text_encoder, chosen.sentences, show_progress_bar=show_progress_bar)
    if not any(len(one.words) > 1 for one in traces):
        raise ConfigError(
            "no sentence has two words or more, so attention has nothing to choose from",
            hint="Take another --split or more --sentences",
        )
    labels = [objective.told(target) for target in chosen.targets]
    lengths = np.array([len(one.words) for one in traces])
    encoder = model.config.model.encoder.name
    found = Inspection(
        numbers={
            "encoder": encoder,
            "sentences": chosen.source,
            **objective.evaluate(numbers, chosen.targets).figures(),
        },
        figures={},
        skipped={},
        vectors={"sentence_embeddings": np.stack([one.vector for one in traces])},
        metadata={
            "sentence": chosen.sentences,
            "label": labels,
            "prediction": answers,
            "words": lengths.tolist(),
        },
    )
    for number, name in enumerate(model.inputs.names):
        if number != model.inputs.looked_at:
            found.metadata[name] = [text[number] for text in chosen.texts]
    _weight_vectors(found, traces, chosen, objective, lengths)
    _maps(found, traces, chosen, labels, answers, maps)
    _entropy(found, traces, chosen)
    _top_words(found, traces, chosen, words, min_count)
    _score(found, traces, chosen, encoder, compared)
    return found


def write_inspection(found: Inspection, figure_folder: Path, log_folder: Path) -> list[Path]:
    """Writes figures as PNG with their numbers, and all of it for TensorBoard.

    An older inspection is replaced.

    Returns:
        The files in `figure_folder`.
    """
    from dsa_keras.pictures import figure_png

    written = []
    for name, figure in found.figures.items():
        path = figure_folder / f"{name}.png"
        with written_aside(path) as aside:
            aside.write_bytes(figure_png(figure))
        written.append(path)
    for name in found.skipped:
        (figure_folder / f"{name}.png").unlink(missing_ok=True)
    path = figure_folder / "inspection.json"
    write_json(path, {**found.numbers, "skipped": found.skipped})
    shutil.rmtree(log_folder, ignore_errors=True)
    with folder_written_aside(log_folder) as aside:
        _write_logs(found, aside)
    return [*written, path]


def _write_logs(found: Inspection, folder: Path) -> None:
    import tensorflow as tf

    from dsa_keras.pictures import figure_image

    with tf.summary.create_file_writer(str(folder)).as_default(step=0):
        for name, figure in found.figures.items():
            tf.summary.image(name.replace("_", " "), figure_image(figure)[None])
        for step, values in enumerate(found.numbers["entropy"]["by_iteration"], start=1):
            for number, value in enumerate(values, start=1):
                tf.summary.scalar(f"entropy by iteration/attention {number}", value, step=step)
        for name, score in found.numbers.get("attention_score", {}).items():
            tf.summary.scalar(f"attention score/{name}", score["mean"])
    write_projector(folder, found.vectors, found.metadata)


def _weight_vectors(
    found: Inspection,
    traces: list[Trace],
    chosen: Sample,
    objective: Objective,
    lengths: np.ndarray,
) -> None:
    name = "dynamic_weight_vectors"
    iterations = traces[0].weights.shape[0]
    if traces[0].weight_vectors is None:
        found.skipped[name] = "the encoder's weight vector is static: the same for every sentence"
        return
    if iterations < 2:
        found.skipped[name] = "with one routing iteration there is no iteration r-1"
        return
    # z of the first attention at iteration r-1; r is the last of them.
    vectors = np.stack(
        [one.weight_vectors[-2, 0] for one in traces if one.weight_vectors is not None]
    )
    projection, groups = principal_components(vectors), objective.grouped(chosen.targets)
    found.vectors[name] = vectors
    found.numbers[name] = {
        "iteration": iterations - 1,
        "explained": list(projection.explained),
        "spread": projection.spread,
        "static_spread": 0.0,
        "points": projection.points.round(6).tolist(),
        "labels": groups[0].tolist(),
        "words": lengths.tolist(),
    }
    found.figures[name] = figures.weight_vectors_figure(
        projection,
        *groups,
        lengths,
        f"Dynamic weight vectors: first attention at iteration {iterations - 1} of {iterations}, "
        f"{chosen.source}",
        objective.target_kind,
    )


def _maps(
    found: Inspection,
    traces: list[Trace],
    chosen: Sample,
    labels: list[str],
    answers: list[str],
    count: int,
) -> None:
    numbers = telling_sentences(traces, count)
    several = traces[0].weights.shape[1] > 1
    found.numbers["attention_maps"] = [
        {
            "sentence": chosen.sentences[number],
            "words": list(traces[number].words),
            "label": labels[number],
            "prediction": answers[number],
            "disagreement": disagreement(traces[number].weights[-1]),
            "weights": traces[number].weights[-1].astype(float).round(6).tolist(),
        }
        for number in numbers
    ]
    shown = [
        map_of(f"true: {labels[number]}, predicted: {answers[number]}", traces[number])
        for number in numbers
    ]
    which = "the attentions differ most" if several else "the attention is sharpest"
    found.figures["attention_maps"] = map_figure(
        shown, f"Attention maps: sentences where {which}", f"chosen from {chosen.source}"
    )


def _entropy(found: Inspection, traces: list[Trace], chosen: Sample) -> None:
    values = mean_entropy(traces)
    kept = [one for one in traces if len(one.words) > 1]
    effective = np.mean([np.exp(entropy(one.weights)) for one in kept], axis=0)
    found.numbers["entropy"] = {
        "by_iteration": values.tolist(),
        "effective_words_by_iteration": effective.tolist(),
        "words": float(np.mean([len(one.words) for one in kept])),
        "sentences": len(kept),
    }
    found.figures["attention_entropy"] = figures.entropy_figure(
        values, f"How attention sharpens, mean of {chosen.source}"
    )


def _top_words(
    found: Inspection, traces: list[Trace], chosen: Sample, count: int, min_count: int
) -> None:
    filled = [one for one in traces if one.words]
    ranking = top_words(filled, count, min_count)
    found.numbers["top_words"] = {
        "min_count": min_count,
        "by_attention": [[asdict(one) for one in words] for words in ranking],
    }
    found.figures["top_words"] = figures.top_words_figure(
        ranking,
        f"Words that get most weight, {chosen.source}\n(how often a word occurs in brackets, at "
        f"least {min_count} times)",
    )


def _score(
    found: Inspection,
    traces: list[Trace],
    chosen: Sample,
    encoder: str,
    compared: tuple[str, Explainable] | None,
) -> None:
    if chosen.decisive is None:
        found.skipped["attention_score"] = "only generated data knows the words that decide"
        return
    scored: list[tuple[str, Callable[[], list[Trace]]]] = [(encoder, lambda: traces)]
    if compared is not None:
        name, other = compared
        scored.append(
            (
                name if name != encoder else f"{name} (compared)",
                lambda: trace(other.text_encoder, chosen.sentences),
            )
        )
    scores: list[tuple[str, AttentionScore]] = []
    for name, looked_at in scored:
        score = attention_score(looked_at(), chosen.sentences, chosen.decisive)
        if score is not None:
            scores.append((name, score))
    if not scores:
        found.skipped["attention_score"] = (
            "the tokeniser splits no sentence as its words are counted"
        )
        return
    found.numbers["attention_score"] = {
        "uniform": {"mean": scores[0][1].uniform},
        **{name: _plain(score) for name, score in scores},
    }
    found.figures["attention_score"] = figures.score_figure(
        scores, f"Attention score with 95 % intervals, {chosen.source}"
    )


def _plain(score: AttentionScore) -> dict[str, Any]:
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in asdict(score).items()
    }
