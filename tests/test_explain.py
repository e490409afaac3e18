"""`explain`: words and weights in the terminal, as JSON, as a page and as a picture."""

from __future__ import annotations

import io
import itertools
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dsa_keras
from dsa_keras.commands.main import main
from dsa_keras.inspection.explanation import Explanation
from dsa_keras.inspection.page import html_page
from dsa_keras.inspection.shades import background, darkest, foreground
from dsa_keras.inspection.terminal import color_depth, rendered
from dsa_keras.inspection.trace import Trace
from dsa_keras.objectives.classification import Prediction
from tests.runs import shared_run, tiny_run

HOSTILE = "<script>alert(1)</script>"
ESCAPE = re.compile(r"\x1b\[[\d;]*m")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "multiple"
    return tiny_run(path, encoder="dsa-multiple", num_attentions=2, num_iterations=3)


@pytest.fixture(scope="module")
def pair_run(tmp_path_factory):
    return tiny_run(tmp_path_factory.mktemp("runs") / "pair", pair=True, encoder="self-attention")


def made(words, weights, label="good", known=None):
    """An explanation of a sentence with these weights, `(iterations, attentions, words)`."""
    words, weights = tuple(words), np.array(weights, np.float32)
    known = known or (True,) * len(words)
    one = Trace(words, known, weights, np.zeros(2, np.float32), None)
    prediction = Prediction(label, 0.75, {label: 0.75, "other": 0.25})
    return Explanation(" ".join(words), prediction, {"sentence": one})


def test_plain_text_has_the_weights_in_brackets_and_marks_unknown_words():
    one = made(["a", "blorp"], [[[0.5, 0.5]], [[0.125, 0.875]]], known=(True, False))
    assert rendered(one).splitlines() == [
        "good  0.750",
        "    attention  a[0.12] blorp(?)[0.88]",
        "  (?) the model does not know this word",
    ]
    assert rendered(one, iterations=True).splitlines()[1:3] == [
        "    attention, iteration 1  a[0.50] blorp(?)[0.50]",
        "    attention, iteration 2  a[0.12] blorp(?)[0.88]",
    ]


def test_long_sentences_wrap_and_lose_no_word():
    words = [f"word{number}" for number in range(50)]
    one = made(words, [[[1 / 50] * 50]])
    for colors in ("none", "256", "true"):
        lines = ESCAPE.sub("", rendered(one, colors=colors, width=60)).splitlines()
        assert len(lines) > 5
        assert max(map(len, lines)) <= 60
        assert re.findall(r"word\d+", "\n".join(lines)) == words


def test_wide_characters_take_two_columns():
    one = made(["電影"] * 20, [[[0.05] * 20]])
    lines = rendered(one, width=40).splitlines()
    assert all(len(line) + line.count("電影") * 2 <= 40 for line in lines)


@pytest.mark.parametrize(("colors", "code"), [("true", "48;2;8;48;107"), ("256", "48;5;")])
def test_the_heaviest_word_has_the_darkest_background(colors, code):
    text = rendered(made(["light", "heavy"], [[[0.0, 1.0]]]), colors=colors)
    light, heavy = re.findall(r"\x1b\[([\d;]*)m (?:light|heavy) \x1b\[0m", text)
    assert heavy.startswith(code)
    assert heavy.endswith("255;255;255" if colors == "true" else "38;5;231")
    assert light != heavy


def test_colors_only_on_a_terminal_without_no_color():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    assert color_depth(io.StringIO(), {"COLORTERM": "truecolor"}) == "none"
    assert color_depth(Terminal(), {}) == "256"
    assert color_depth(Terminal(), {"COLORTERM": "truecolor"}) == "true"
    assert color_depth(Terminal(), {"COLORTERM": "truecolor", "NO_COLOR": "1"}) == "none"
    assert color_depth(Terminal(), {"NO_COLOR": ""}) == "256"
    assert color_depth(Terminal(), {"TERM": "dumb"}) == "none"


@given(st.floats(0, 1))
def test_text_on_a_shade_has_contrast_enough_to_read(share):
    def luminance(color):
        parts = [one / 255 for one in color]
        parts = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
        return np.dot(parts, [0.2126, 0.7152, 0.0722])

    back = background(share)
    low, high = sorted([luminance(back), luminance(foreground(back))])
    assert (high + 0.05) / (low + 0.05) >= 4.5


@given(st.lists(st.floats(0, 1), min_size=2, max_size=2).map(sorted))
def test_more_weight_is_never_lighter(shares):
    first, second = (np.dot(background(share), [0.2126, 0.7152, 0.0722]) for share in shares)
    assert second <= first + 1


def test_uniform_weights_are_not_shown_as_the_darkest():
    assert darkest(np.full((1, 4), 0.25)) == 0.5
    assert darkest(np.array([[1.0]])) == 1.0
    assert darkest(np.array([[0.9, 0.1, 0, 0]])) == 0.9
    assert darkest(np.zeros((2, 0))) == 1.0


class Page(HTMLParser):
    """The tags, texts and attributes of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts, self.attributes = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.texts.append(data)


def test_the_page_shows_hostile_text_as_text():
    image = "<img/src=x/onerror=alert(1)>"
    one = made([HOSTILE, '"&</style>'], [[[0.3, 0.7]]], label=image)
    page = Page(html_page([one], title=HOSTILE))
    assert "script" not in page.tags
    assert "img" not in page.tags
    assert page.texts.count(HOSTILE) == 3
    assert image in page.texts
    assert '"&</style>' in page.texts
    assert not any(name.startswith("on") for name, _ in page.attributes)


def test_the_page_needs_nothing_from_elsewhere():
    text = html_page([made(["a"], [[[1.0]]])])
    page = Page(text)
    assert not {"link", "script", "img", "iframe"} & set(page.tags)
    assert not {"src", "href"} & {name for name, _ in page.attributes}
    assert "url(" not in text
    assert "default-src 'none'" in text
    assert text.startswith("<!DOCTYPE html>")


def test_explanations_are_the_models_own_weights(run):
    model = dsa_keras.load(run)
    texts = ["not a dull moment", "zzz film", ""]
    explanations = model.explain(texts)
    assert [one.answer for one in explanations] == model.predict(texts)
    weights = explanations[0].traces["sentence"].weights
    assert weights.shape == (3, 2, 4)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-5)
    np.testing.assert_allclose(weights[0], 0.25, rtol=1e-5)
    assert explanations[1].traces["sentence"].known == (False, True)
    assert explanations[2].traces["sentence"].weights.shape == (3, 2, 0)
    assert "(no words)" in rendered(explanations[2])
    (unknown,) = model.explain(["zzz"])
    assert "  note: no word of it is known to the model" in rendered(unknown).splitlines()
    assert "Note: no word of it is known to the model." in Page(html_page([unknown])).texts
    assert unknown.to_dict()["known_words"] == 0
    assert model.explain([]) == []


def test_half_characters_do_not_shift_words_against_weights(run):
    (one,) = dsa_keras.load(run).explain(["dull\ud800 film"])
    assert one.traces["sentence"].words == ("dull\ufffd", "film")
    assert one.traces["sentence"].weights.shape[-1] == 2


def test_json_of_the_command_line(run, capsys):
    assert main(["explain", str(run), "not a dull moment", "--json", "--iterations"]) == 0
    (value,) = json.loads(capsys.readouterr().out)
    model = dsa_keras.load(run)
    (one,) = model.explain(["not a dull moment"])
    assert value["label"] == one.answer.label
    rows = value["sentences"]["sentence"]["attention"]
    assert [(row["attention"], row["iteration"]) for row in rows] == [
        (attention, iteration) for attention in (1, 2) for iteration in (1, 2, 3)
    ]
    for row in rows:
        expected = one.traces["sentence"].weights[row["iteration"] - 1, row["attention"] - 1]
        np.testing.assert_allclose(row["weights"], expected, atol=1e-6)


def test_pictures_and_pages_of_the_command_line(run, tmp_path, capsys):
    from matplotlib.image import imread

    png, page = tmp_path / "new" / "map.png", tmp_path / "page.html"
    texts = [f"{HOSTILE} $x_1$ film " + "a truly dull moment " * 12, "電影 film", ""]
    assert main(["explain", str(run), *texts, "--png", str(png), "--html", str(page)]) == 0
    assert "\x1b" not in capsys.readouterr().out
    assert imread(png).shape[1] > 600
    assert HOSTILE in Page(page.read_text()).texts


def test_pairs_show_both_sentences(pair_run, capsys):
    assert main(["explain", str(pair_run), "a man sleeps", "a man rests"]) == 0
    out = capsys.readouterr().out
    assert out.index("premise") < out.index("sleeps") < out.index("hypothesis")
    assert out.index("hypothesis") < out.index("rests")
    assert main(["explain", str(pair_run), "a man sleeps"]) == 2
    assert "takes pairs" in capsys.readouterr().err


def test_one_text_has_one_explanation(run, pair_run):
    model = dsa_keras.load(run)
    one = model.explain("not a dull moment")
    assert one.to_dict() == model.explain(["not a dull moment"])[0].to_dict()
    one = dsa_keras.load(pair_run).explain(("a man sleeps", "a man rests"))
    assert list(one.traces) == ["premise", "hypothesis"]


def test_an_encoder_without_attention_is_refused(capsys):
    path = shared_run(encoder="cnn")
    assert main(["explain", str(path), "a film"]) == 2
    assert "the encoder cnn has no attention to look at" in capsys.readouterr().err


def test_too_many_texts_for_a_picture_are_refused():
    from dsa_keras.errors import ConfigError
    from dsa_keras.inspection.maps import map_figure, maps_of

    maps = maps_of(made(["a"] * 100, [[[0.01] * 100]])) * 2000
    with pytest.raises(ConfigError, match="do not fit into one picture"):
        map_figure(maps, "title")


@pytest.mark.parametrize(("words", "decimals"), [(1, 0), (10, 0), (11, 1), (100, 1), (101, 2)])
def test_weights_of_long_sentences_have_the_decimals_that_tell_them_apart(words, decimals):
    from dsa_keras.inspection.maps import map_figure, maps_of

    weights = np.linspace(1, 3, words)
    weights /= weights.sum()
    one = made([f"w{number}" for number in range(words)], [[weights.tolist()]])
    expected = [f"{100 * weight:.{decimals}f}" for weight in weights.astype(np.float32)]
    figure = map_figure(maps_of(one), "title")
    drawn = [text.get_text() for text in figure.axes[0].texts]
    cells = [text for text in drawn if re.fullmatch(r"\d+(\.\d+)?", text)]
    assert cells == expected
    assert not {"0", "0.0"} & {*cells}
    shown = [text for text in Page(html_page([one])).texts if re.fullmatch(r"\d+\.\d+", text)]
    assert shown == [f"{100 * w:.{max(1, decimals)}f}" for w in weights.astype(np.float32)]
    in_brackets = re.findall(r"\[(.*?)\]", rendered(one))
    assert in_brackets == [f"{w:.{decimals + 2}f}" for w in weights.astype(np.float32)]


def test_a_long_sentence_goes_on_in_the_next_line_of_a_picture():
    from dsa_keras.inspection.maps import map_figure, maps_of

    words = [f"word{number}" for number in range(60)]
    figure = map_figure(maps_of(made(words, [[[1 / 60] * 60]])), "title")
    figure.draw_without_rendering()
    left, right = figure.axes[0].get_xlim()
    places = {text.get_text(): text for text in figure.axes[0].texts}
    boxes = [places[word].get_window_extent() for word in words]
    to_data = figure.axes[0].transData.inverted()
    for box in boxes:
        (start, _), (end, _) = to_data.transform(box.get_points())
        assert left <= start < end <= right
    lines = sorted({round(box.y0) for box in boxes})
    assert len(lines) > 2
    assert all(after - before > 40 for before, after in itertools.pairwise(lines))


def test_the_legends_explain_unknown_words():
    from dsa_keras.inspection.maps import map_figure, maps_of

    legend = "(?) the model does not know this word"
    for known in (True, False):
        one = made(["a", "blorp"], [[[0.5, 0.5]]], known=(True, known))
        drawn = [text.get_text() for text in map_figure(maps_of(one), "title").axes[0].texts]
        assert (legend in drawn, "blorp(?)" in drawn) == (not known,) * 2
        text = " ".join(" ".join(Page(html_page([one])).texts).split())
        assert "Words with a dotted underline are not known to the model." in text
