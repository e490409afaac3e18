"""The numbers behind the figures, against values computed another way, and what is written."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dsa_keras.datasets import Split, load_dataset
from dsa_keras.errors import ConfigError, DataError
from dsa_keras.inspection.measures import (
    Projection,
    attention_score,
    disagreement,
    entropy,
    mean_entropy,
    principal_components,
    telling_sentences,
    top_words,
)
from dsa_keras.inspection.trace import Trace
from tests.runs import small, tiny_run


def made_trace(words, weights, known=True):
    """A trace with these weights, `(iterations, attentions, words)`."""
    words = tuple(words.split())
    weights = np.array(weights, np.float32).reshape(-1, np.shape(weights)[-2], len(words))
    return Trace(words, (known,) * len(words), weights, np.zeros(2, np.float32), None)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "multiple"
    return tiny_run(path, encoder="dsa-multiple", num_attentions=3, num_iterations=3)


@pytest.fixture(scope="module")
def model(run):
    import dsa_keras

    return dsa_keras.load(run)


@pytest.fixture(scope="module")
def found(run, model):
    from dsa_keras.inspection.report import inspect_model, sample, write_inspection

    split = load_dataset("demo-sentiment", size=300)["dev"]
    chosen = sample(split, 25, 3, "demo-sentiment dev")
    result = inspect_model(model, chosen, maps=3, words=4, min_count=2)
    write_inspection(result, run / "figures", run / "logs" / "inspection")
    return result, chosen


def untrained(split, encoder, **changes):
    """A model with random weights that knows the words of a split."""
    from dsa_keras.config import TrainingConfig
    from dsa_keras.data import Vocabulary
    from dsa_keras.datasets import preset
    from dsa_keras.models import Network
    from dsa_keras.runs import RunConfig
    from dsa_keras.sentence_model import SentenceModel
    from dsa_keras.text_encoder import TextEncoder

    words = Vocabulary.from_counts(Counter(" ".join(split.texts).split()))
    config = small(preset("sst2", encoder).model, **changes).replace(vocabulary_size=len(words))
    training = TrainingConfig(tokenizer="whitespace")
    text_encoder = TextEncoder(training.tokenizer, words, Network(config))
    return SentenceModel(text_encoder, RunConfig("demo-sentiment", config, training))


def routing_by_hand(model, sentence):
    """Algorithm 1 in NumPy float64, on the encoder's own compressed words."""
    layers = model.network.layers
    ids = np.array([model.vocabulary.ids(sentence.split())], np.int32)
    words = model.network.embedding(ids)
    encoded = [layers[name](words) for name in ("dense_conv_1", "dense_conv_2")]
    compressed = np.asarray(layers["compression"]([*encoded, words])[0], float)
    attention = layers["attention"]
    kernel, bias = (np.asarray(one, float) for one in attention.get_weights())
    projected = compressed @ kernel + bias
    projected = np.where(projected > 0, projected, 0.01 * projected)
    size, count = attention.units, attention.num_attentions
    all_weights = np.zeros((attention.num_iterations, count, len(compressed)))
    all_vectors = np.zeros((attention.num_iterations, count, size))
    for j in range(count):
        x = projected[:, j * size : (j + 1) * size]
        q = np.zeros(len(x))
        for step in range(attention.num_iterations):
            a = np.exp(q) / np.exp(q).sum()
            z = np.tanh(a @ x)
            q = q + x @ z
            all_weights[step, j], all_vectors[step, j] = a, z
    return all_weights, all_vectors


def test_a_trace_is_the_papers_algorithm(model):
    from dsa_keras.inspection import trace

    sentences = ["not a dull moment", "the film lacks heart", "dull"]
    for sentence, one in zip(
        sentences, trace(model.text_encoder, sentences, batch_size=2), strict=True
    ):
        weights, vectors = routing_by_hand(model, sentence)
        assert one.words == tuple(sentence.split())
        np.testing.assert_allclose(one.weights, weights, atol=1e-5)
        np.testing.assert_allclose(one.weight_vectors, vectors, atol=1e-5)
        np.testing.assert_allclose(one.vector, vectors[-1].ravel(), atol=1e-5)
        np.testing.assert_allclose(model.encode(sentence), one.vector, atol=1e-5)


@given(arrays(np.float64, (7, 4), elements=st.floats(-10, 10)))
def test_principal_components_are_the_eigenvectors_of_the_covariance(vectors):
    found = principal_components(vectors)
    values = np.sort(np.linalg.eigvalsh(np.cov(vectors.T, ddof=0)))[::-1]
    total = values.sum()
    assert found.spread == pytest.approx(total, abs=1e-9)
    np.testing.assert_allclose(found.points.var(axis=0), values[:2], atol=1e-9)
    np.testing.assert_allclose(found.points.mean(axis=0), 0, atol=1e-9)
    if total > 1e-9:
        np.testing.assert_allclose(found.explained, values[:2] / total, atol=1e-9)


def test_vectors_that_are_all_the_same_have_no_spread():
    found = principal_components(np.full((5, 3), 2.5))
    assert found.spread == pytest.approx(0, abs=1e-20)
    np.testing.assert_allclose(found.points, 0, atol=1e-12)


def test_one_vector_can_be_projected():
    assert principal_components(np.ones((1, 3))).points.shape == (1, 2)


def test_entropy_of_known_weights():
    assert entropy(np.array([0.5, 0.25, 0.25, 0])) == pytest.approx(1.5 * math.log(2))


def test_mean_entropy_is_a_share_of_uniform_and_leaves_single_words_out():
    two = made_trace("a b", [[[0.5, 0.5]], [[1.0, 0.0]]])
    four = made_trace("a b c d", [[[0.25] * 4], [[0.5, 0.5, 0, 0]]])
    single = made_trace("a", [[[1.0]], [[1.0]]])
    np.testing.assert_allclose(mean_entropy([two, four, single]), [[1.0], [0.25]], atol=1e-7)


def test_disagreement_is_the_mean_distance_of_all_pairs():
    weights = np.array([[1, 0, 0], [0, 1, 0], [0.5, 0.5, 0]])
    pairs = [abs(a - b).sum() / 2 for a, b in itertools.combinations(weights, 2)]
    assert disagreement(weights) == pytest.approx(np.mean(pairs))
    assert disagreement(weights[:1]) == 0


def test_the_most_telling_sentences_come_first_and_repetitions_last():
    flat = made_trace("a b c d e f", [[[1 / 6] * 6] * 2])
    apart = made_trace("g h i j k l", [[[1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0]]])
    like_apart = made_trace("g h i j k m", [[[1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0]]])
    short = made_trace("x y", [[[1, 0], [0, 1]]])
    empty = Trace((), (), np.zeros((1, 2, 0), np.float32), np.zeros(2, np.float32), None)
    traces = [flat, empty, apart, like_apart, short, apart]
    assert telling_sentences(traces, 2) == [2, 0]
    assert telling_sentences(traces, 9) == [2, 0, 4, 3]


def test_with_one_attention_the_sharpest_sentences_are_shown():
    flat = made_trace("a b c d e f", [[[1 / 6] * 6]])
    sharp = made_trace("g h i j k l", [[[0.9, 0.1, 0, 0, 0, 0]]])
    assert telling_sentences([flat, sharp], 1) == [1]


def test_top_words_by_mean_weight_against_uniform():
    traces = [
        made_trace("a b", [[[0.75, 0.25], [0.0, 1.0]]]),
        made_trace("a b c d", [[[0.5, 0.25, 0.25, 0], [0.25] * 4]]),
    ]
    first, second = top_words(traces, count=2, min_count=2)
    assert [one.word for one in first] == ["a", "b"]
    assert (first[0].count, first[0].weight, first[0].lift) == (2, 0.625, (1.5 + 2) / 2)
    assert [(one.word, one.lift) for one in second] == [("b", 1.5), ("a", 0.5)]
    assert top_words(traces, count=9, min_count=3) == [[], []]


def test_attention_score_is_the_share_on_decisive_words():
    traces = [
        made_trace("a b", [[[0.5, 0.5], [0.5, 0.5]], [[0.75, 0.25], [0.0, 1.0]]]),
        made_trace("a b c d", [[[0.25] * 4] * 2, [[0.5, 0.25, 0.25, 0], [0, 0, 0.5, 0.5]]]),
        made_trace("do n't", [[[0.5, 0.5]] * 2] * 2),
    ]
    score = attention_score(traces, ["a b", "a b c d", "don't"], [(0,), (1, 2), (0,)])
    assert score.uniform == pytest.approx(0.5)
    np.testing.assert_allclose(score.by_iteration, [[0.5, 0.5], [0.625, 0.25]])
    assert score.mean == pytest.approx(0.4375)
    assert score.error == pytest.approx([0.125, 0.25])
    assert (score.examples, score.left_out) == (2, 1)
    assert attention_score(traces[2:], ["don't"], [(0,)]) is None


def test_the_first_iteration_scores_as_uniform_weights_do(found):
    result, _ = found
    score = result.numbers["attention_score"]["dsa-multiple"]
    uniform = result.numbers["attention_score"]["uniform"]["mean"]
    np.testing.assert_allclose(score["by_iteration"][0], uniform, rtol=1e-5)
    np.testing.assert_allclose(result.numbers["entropy"]["by_iteration"][0], 1, rtol=1e-5)


def test_a_sample_is_of_distinct_examples_and_keeps_what_belongs_together():
    from dsa_keras.inspection.report import sample

    split = load_dataset("demo-nli", size=300)["dev"]
    chosen = sample(split, 10, 0, "demo-nli dev")
    assert chosen.source == "10 hypotheses of demo-nli dev"
    numbers = [split.texts.index(text) for text in chosen.texts]
    assert numbers == sorted(set(numbers))
    assert chosen.sentences == [split.texts[number][1] for number in numbers]
    assert chosen.targets.tolist() == split.targets[numbers].tolist()
    assert chosen.decisive == [split.decisive[number] for number in numbers]
    assert sample(split, 10, 1, "").texts != chosen.texts


def test_the_points_are_those_of_z_before_the_last_iteration(model, found):
    result, chosen = found
    vectors = np.array([routing_by_hand(model, one)[1][-2, 0] for one in chosen.sentences])
    np.testing.assert_allclose(result.vectors["dynamic_weight_vectors"], vectors, atol=1e-5)
    numbers = result.numbers["dynamic_weight_vectors"]
    assert numbers["iteration"] == 2
    assert numbers["labels"] == chosen.targets.tolist()
    assert numbers["words"] == [len(one.split()) for one in chosen.sentences]
    # Distances in the plane do not depend on the signs of the axes.
    centred = vectors - vectors.mean(axis=0)
    _, basis = np.linalg.eigh(centred.T @ centred)
    plane = centred @ basis[:, -2:]
    expected, got = (
        np.linalg.norm(one[:, None] - one[None], axis=-1)
        for one in (plane, np.array(numbers["points"]))
    )
    np.testing.assert_allclose(got, expected, atol=1e-4)


def test_figures_and_numbers_are_written(run, found):
    from matplotlib.image import imread

    result, _ = found
    names = {
        *("dynamic_weight_vectors", "attention_maps", "attention_entropy"),
        *("top_words", "attention_score"),
    }
    assert set(result.figures) == names
    for name in names:
        picture = imread(run / "figures" / f"{name}.png")
        assert min(picture.shape[:2]) > 200
        assert len(np.unique(picture[::3, ::3] @ [1, 256, 65536, 0])) > 20
    kept = json.loads((run / "figures" / "inspection.json").read_text())
    assert kept["attention_score"] == result.numbers["attention_score"]
    assert kept["skipped"] == {}
    assert len(kept["attention_maps"]) == 3


def test_nothing_of_a_figure_is_clipped(found):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    result, _ = found
    for name, figure in result.figures.items():
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        drawn = figure.get_tightbbox(canvas.get_renderer())
        width, height = figure.get_size_inches()
        assert drawn.x0 >= -0.01, name
        assert drawn.y0 >= -0.01, name
        assert drawn.x1 <= width + 0.01, name
        assert drawn.y1 <= height + 0.01, name


def test_numbers_along_an_axis_do_not_run_into_each_other():
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from dsa_keras.inspection.figures import weight_vectors_figure

    # The wider the numbers, the fewer there may be.
    for scale in (0.06, 2e-3, 7e-6, 1.0, 40.0):
        points = scale * np.array([[-1.65, -1], [1.07, 0.7], [0.5, -1.9]])
        projection = Projection(points, (0.6, 0.4), 1.0)
        words = np.array([3, 4, 20])
        figure = weight_vectors_figure(projection, np.array([0, 1, 1]), ("a", "b"), words, "title")
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        for axes in figure.axes[:3]:
            boxes = [one.get_window_extent() for one in axes.get_xticklabels()]
            frame = axes.get_window_extent()
            shown = [one for one in boxes if frame.x0 <= (one.x0 + one.x1) / 2 <= frame.x1]
            shown.sort(key=lambda one: one.x0)
            assert len(shown) >= 2
            assert all(one.x1 + 5 < other.x0 for one, other in itertools.pairwise(shown)), scale


@pytest.fixture(scope="module")
def pairs_with_numbers():
    """A model that says a number of each pair, with random weights, and what it found."""
    from dsa_keras.inputs import PAIR
    from dsa_keras.inspection.report import inspect_model, sample
    from dsa_keras.objectives.regression import Regression

    texts = load_dataset("demo-nli", size=300)["dev"].texts
    numbers = np.linspace(0, 5, len(texts))
    split = Split(texts, numbers)
    flat = Split([one for text in texts for one in text], numbers)
    objective = Regression(mean=2.5, deviation=1.5)
    model = untrained(flat, "dsa-multiple", num_attentions=2, inputs=PAIR, objective=objective)
    chosen = sample(split, 20, 0, "mine dev")
    return model, chosen, inspect_model(model, chosen, maps=2, min_count=1)


def test_pairs_with_numbers_are_inspected(pairs_with_numbers):
    model, chosen, found = pairs_with_numbers
    assert found.numbers["sentences"] == "20 hypotheses of mine dev"
    evaluation = model.objective.evaluate(model.numbers(chosen.texts), chosen.targets)
    assert evaluation.figures().items() <= found.numbers.items()
    assert "only generated data" in found.skipped["attention_score"]
    # Thirds of the numbers take the place of classes.
    groups = found.numbers["dynamic_weight_vectors"]["labels"]
    assert groups == sorted(groups)
    assert Counter(groups) == {0: 7, 1: 6, 2: 7}
    titles = [axes.get_title() for axes in found.figures["dynamic_weight_vectors"].axes]
    assert titles[0] == "coloured by the true number"
    for one in found.numbers["attention_maps"]:
        number = chosen.sentences.index(one["sentence"])
        assert one["label"] == f"{chosen.targets[number]:g}"
        assert float(one["prediction"]) == pytest.approx(
            float(model.numbers([chosen.texts[number]])[0]), abs=1e-4
        )
    assert found.metadata["premise"] == [premise for premise, _ in chosen.texts]
    assert list(found.metadata) == ["sentence", "label", "prediction", "words", "premise"]


def test_maps_say_what_is_true_and_what_was_predicted(found, pairs_with_numbers):
    for result in (found[0], pairs_with_numbers[2]):
        texts = [one.get_text() for one in result.figures["attention_maps"].axes[0].texts]
        for one in result.numbers["attention_maps"]:
            assert f"true: {one['label']}, predicted: {one['prediction']}" in texts


def test_the_projector_table_cannot_be_broken_by_a_text(tmp_path):
    from dsa_keras.inspection.projector import write_projector

    metadata = {"sentence": ["a\tb\nc", "", "d\r\ne\x00"], "label": ["x", "y\t", "z"]}
    write_projector(tmp_path, {"vectors": np.eye(3, dtype=np.float32)}, metadata)
    lines = (tmp_path / "metadata.tsv").read_text().split("\n")
    assert lines == ["sentence\tlabel", "a b c\tx", "(none)\ty", "d e\tz", ""]


@pytest.mark.parametrize(
    ("encoder", "changes", "reason"),
    [
        ("dsa-single", {"num_iterations": 1}, "no iteration r-1"),
        ("self-attention", {}, "static"),
        ("bilstm-self-attention", {}, "static"),
    ],
)
def test_what_a_model_cannot_show_is_left_out_and_said(encoder, changes, reason):
    from dsa_keras.inspection.report import inspect_model, sample

    split = load_dataset("demo-sentiment", size=300)["dev"]
    model = untrained(split, encoder, **changes)
    result = inspect_model(model, sample(split, 8, 0, "dev"), compared=("other", model))
    assert reason in result.skipped["dynamic_weight_vectors"]
    assert set(result.figures) == {
        *("attention_maps", "attention_entropy", "top_words", "attention_score")
    }
    scores = result.numbers["attention_score"]
    assert scores["other"] == scores[encoder]
    plain = Split(split.texts, split.targets)
    assert "attention_score" in inspect_model(model, sample(plain, 8, 0, "dev")).skipped
    with pytest.raises(ConfigError, match="no score to compare"):
        inspect_model(model, sample(plain, 8, 0, "dev"), compared=("other", model))


def test_an_encoder_without_attention_is_refused():
    from dsa_keras.inspection import explain, trace
    from dsa_keras.inspection.report import inspect_model, sample

    split = load_dataset("demo-sentiment", size=300)["dev"]
    model = untrained(split, "bilstm")
    for look in (
        lambda: trace(model.text_encoder, ["a film"]),
        lambda: explain(model, ["a film"]),
        lambda: inspect_model(model, sample(split, 8, 0, "dev")),
    ):
        with pytest.raises(ConfigError, match="bilstm has no attention"):
            look()


def test_the_command_line_refuses_an_encoder_without_attention(tmp_path, capsys):
    from dsa_keras.commands.main import main

    path = str(tiny_run(tmp_path / "run", encoder="cnn"))
    for arguments in (["inspect", path], ["explain", path, "a film"]):
        assert main(arguments) == 2
        assert "the encoder cnn has no attention" in capsys.readouterr().err


def test_probing_logs_every_epoch_and_does_not_change_the_training(tmp_path):
    from dsa_keras.inspection.probe import Probe

    texts = ["not a dull moment", "the film lacks heart"]
    probe = Probe(texts, tmp_path / "probe")
    settings = {"training": {"epochs": 2}}
    probed = tiny_run(tmp_path / "a", **settings, options={"probe": probe, "deterministic": True})
    plain = tiny_run(tmp_path / "b", **settings, options={"deterministic": True})
    with np.load(probed / "best.npz") as first, np.load(plain / "best.npz") as second:
        assert all(np.array_equal(first[name], second[name]) for name in second)
    assert image_steps(tmp_path / "probe") == {
        "attention/sentence 1": [1, 2],
        "attention/sentence 2": [1, 2],
    }


def image_steps(folder):
    """The steps of each picture in the event files of a folder."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder), size_guidance={"tensors": 0})
    events.Reload()
    return {tag: [one.step for one in events.Tensors(tag)] for tag in events.Tags()["tensors"]}


def test_probe_texts_from_the_dev_split_are_fixed():
    from dsa_keras.inspection.probe import probe_texts

    data = load_dataset("demo-nli", size=300)
    assert probe_texts("3", data) == probe_texts("3", data)
    assert set(probe_texts("3", data)) <= set(data["dev"].texts)
    for wanted in ("0", "-1", "101"):
        with pytest.raises(ConfigError, match="from 1 to 100"):
            probe_texts(wanted, data)


def test_probe_texts_from_a_file(tmp_path):
    from dsa_keras.inspection.probe import probe_texts

    file = tmp_path / "probe.tsv"
    file.write_text("a man sleeps\ta man rests\n\nb\tc\r\n")
    pairs = load_dataset("demo-nli", size=300)
    assert probe_texts(str(file), pairs) == [("a man sleeps", "a man rests"), ("b", "c")]
    file.write_text("only one\n")
    with pytest.raises(DataError, match=r"probe\.tsv, line 1: 1 sentence where"):
        probe_texts(str(file), pairs)
    file.write_text("\n \n")
    with pytest.raises(DataError, match="has 0 texts"):
        probe_texts(str(file), load_dataset("demo-sentiment", size=300))
    with pytest.raises(DataError):
        probe_texts(str(tmp_path / "missing.txt"), pairs)


@pytest.mark.slow
def test_the_command_line_inspects_pairs_and_compares(tmp_path, capsys):
    from dsa_keras.commands.main import main

    path = tiny_run(tmp_path / "run", pair=True, encoder="dsa-multiple", num_attentions=2)
    other = tiny_run(tmp_path / "other", pair=True, encoder="self-attention")
    arguments = ["inspect", str(path), "--sentences", "12", "--split", "test"]
    assert main([*arguments, "--compare", str(other)]) == 0
    out = capsys.readouterr().out
    assert "attention score, self-attention" in out
    table = (path / "logs" / "inspection" / "metadata.tsv").read_text().splitlines()
    assert table[0].split("\t") == ["sentence", "label", "prediction", "words", "premise"]
    assert len(table) == 13
    # A second inspection replaces the first.
    assert main(arguments) == 0
    assert len(list((path / "logs" / "inspection").glob("events*"))) == 1
    assert "self-attention" not in (path / "figures" / "inspection.json").read_text()
    assert main(["inspect", str(path), "--sentences", "0"]) == 2
