r"""The tokenisers' rules for Python's `re`, made from those of the graph: there is no second copy.

RE2, which runs the rules in the graph, and `re` differ in how a pattern is written, and in their
tables of Unicode. So patterns are rewritten, and the members of each class `\p{...}` and the small
form of each capital letter are asked of the graph's own operations and stored.
"""

from __future__ import annotations

import functools
import re
from typing import Any

import numpy as np
import tensorflow as tf

from dsa_keras.data import tokenizers

_CLASSES = {"[:ascii:]": r"\x00-\x7f", "[:^ascii:]": r"\x80-\U0010ffff"}
_PROPERTY = re.compile(r"\\p\{(\w+)\}")


def python_rules(tokenizer: str, lowercase: bool = False) -> dict[str, Any]:
    """What `Tokenizer` of `onnx_runtime` needs to split as the graph does."""
    rules, lowers = tokenizers.rules_of(tokenizer, lowercase)
    patterns = [_rewritten(*rule) for rule in (*tokenizers.SPACE_RULES, *rules)]
    names = sorted({name for pattern, _ in patterns for name in _PROPERTY.findall(pattern)})
    return {
        "name": tokenizer,
        "rules": patterns,
        "finish": [_rewritten(*rule) for rule in tokenizers.JOINER_RULES],
        "classes": {name: _members(name) for name in names},
        "lower": _small_letters() if lowers else ["", ""],
    }


def _rewritten(pattern: str, replacement: str) -> tuple[str, str]:
    for ours, theirs in _CLASSES.items():
        pattern = pattern.replace(ours, theirs)
    pattern = re.sub(r"\\x\{(\w+)\}", lambda found: rf"\U{int(found[1], 16):08x}", pattern)
    return pattern, replacement.replace(r"\0", r"\g<0>")


def _members(name: str) -> list[tuple[int, int]]:
    """The code points of a class of RE2, as first and last of ranges."""
    points, characters = _characters()
    inside = tf.strings.regex_full_match(characters, rf"(?s)\p{{{name}}}").numpy()
    chosen = points[inside]
    breaks = np.flatnonzero(np.diff(chosen) > 1)
    firsts, lasts = np.concatenate([[0], breaks + 1]), np.concatenate([breaks, [-1]])
    return list(zip(chosen[firsts].tolist(), chosen[lasts].tolist(), strict=True))


def _small_letters() -> list[str]:
    """Capital letters, and their small ones in the same order."""
    _, characters = _characters()
    small = tf.strings.lower(tf.strings.lower(characters), encoding="utf-8").numpy()
    pairs = [
        (before.decode(), after.decode())
        for before, after in zip(characters.numpy(), small, strict=True)
        if before != after
    ]
    # The one that becomes two has a rule of its own.
    single = [(before, after) for before, after in pairs if len(after) == 1]
    return ["".join(column) for column in zip(*single, strict=True)]


@functools.cache
def _characters() -> tuple[np.ndarray, Any]:
    """Every code point that is not half a character, and its text."""
    points = np.array([*range(0xD800), *range(0xE000, 0x110000)])
    return points, tf.constant([chr(point).encode() for point in points])
