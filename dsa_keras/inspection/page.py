"""Explanations as one HTML page that needs nothing else: no script, no network.

Every text is escaped, and a content security policy forbids the page to load or run anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from dsa_keras.inspection.explanation import Explanation, rows
from dsa_keras.inspection.shades import background, darkest, foreground, percent_decimals
from dsa_keras.inspection.trace import Trace

_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ background: #fff; color: #111; font: 16px/1.4 system-ui, sans-serif;
  margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }}
section {{ border-top: 1px solid #bbb; padding: .8rem 0; }}
h1 {{ font-size: 1.4rem; }}
h2 {{ font-size: 1.05rem; margin: .2rem 0; }}
h3 {{ color: #444; font-size: .9rem; font-weight: normal; margin: .6rem 0 .1rem; }}
table {{ border-collapse: collapse; }}
th {{ color: #444; font-size: .85rem; font-weight: normal; padding: .3rem 1rem .3rem 0;
  text-align: left; vertical-align: top; white-space: nowrap; }}
.word {{ -webkit-print-color-adjust: exact; print-color-adjust: exact; border-radius: .2rem;
  display: inline-block; margin: 1px; max-width: 100%; overflow-wrap: anywhere;
  padding: .1rem .35rem; text-align: center; }}
.word small {{ display: block; font-size: .65rem; opacity: .85; }}
.unknown b {{ font-weight: normal; text-decoration: underline dotted; }}
.word b {{ font-weight: normal; }}
.note {{ color: #444; font-size: .85rem; }}
</style>
</head>
<body>
<h1>{title}</h1>
<p class="note">The darker a word, the more weight the attention gives it; below each word its
weight in percent. Words with a dotted underline are not known to the model.</p>
"""


def html_page(
    explanations: Sequence[Explanation],
    title: str = "What the model attends to",
    *,
    iterations: bool = False,
) -> str:
    """The page.

    Args:
        explanations: what to show.
        title: of the page.
        iterations: whether to show every routing step instead of the last.
    """
    parts = [_HEAD.format(title=escape(title))]
    for one in explanations:
        parts.append(f"<section>\n<h2>{escape(one.answer.headline())}</h2>\n")
        if details := one.answer.details():
            parts.append(f'<p class="note">{escape(details)}</p>\n')
        for note in one.answer.notes():
            parts.append(f'<p class="note">Note: {escape(note)}.</p>\n')
        for name, sentence in one.traces.items():
            if len(one.traces) > 1:
                parts.append(f"<h3>{escape(name)}</h3>\n")
            parts.append(_table(sentence, iterations))
        parts.append("</section>\n")
    parts.append("</body>\n</html>\n")
    return "".join(parts)


def _table(one: Trace, iterations: bool) -> str:
    if not one.words:
        return '<p class="note">(no words)</p>\n'
    shown = list(rows(one, iterations=iterations))
    scale = darkest(np.stack([row.weights for row in shown]))
    decimals = max(1, percent_decimals(len(one.words)))
    lines = ["<table>\n"]
    for row in shown:
        words = "".join(
            _word(word, known, float(weight), scale, decimals)
            for word, known, weight in zip(one.words, one.known, row.weights, strict=True)
        )
        lines.append(f'<tr><th scope="row">{escape(row.label)}</th><td>{words}</td></tr>\n')
    return "".join([*lines, "</table>\n"])


def _word(word: str, known: bool, weight: float, scale: float, decimals: int) -> str:
    back = background(weight / scale)
    front = foreground(back)
    kind = "word" if known else "word unknown"
    return (
        f'<span class="{kind}" style="background:rgb{back};color:rgb{front}">'
        f"<b>{escape(word)}</b><small>{100 * weight:.{decimals}f}</small></span>"
    )
