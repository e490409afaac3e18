r"""Tokenisers, written once, in TensorFlow string ops.

The code that prepares training data is the code inside an exported model: `tokenize_tensor` uses
stock ops only (no tensorflow_text, no Python function), so it runs in `tf.function`, in `tf.data`
and in a SavedModel under plain TF Serving; `tokenize` is the same graph called from Python.

- `ptb`: the Penn Treebank rules of the classic `tokenizer.sed`, case kept: SNLI as InferSent
  prepares it. Brackets stay `( )`, not `-LRB-`; only the final period of the text is split off, so
  one text should be one sentence.
- `kim`: the SST cleaning of Kim (2014): each ASCII character outside ``A-Za-z0-9(),!?'` `` is a
  space, and the text is lower-cased. Punctuation is *not* split off words (`great!` is one word):
  the SST text it is made for is tokenised already.
- `whitespace`: for text that is already tokenised.

On ASCII text these are the original rules, which say nothing about the rest of Unicode. There:

| input | `ptb` | `kim` | `whitespace` |
|---|---|---|---|
| letters, marks, digits of any script | part of a word | the same, lower-cased | kept |
| ‘ ’ ‚ ‛ ´ | as `'`: don’t is do n't | as `'` | kept |
| “ „ ‟ | word ` `` ` | space, as `"` is | kept |
| ” | word `''` | space, as `"` is | kept |
| … | word `...` | space, as `...` is | kept |
| – — ― | word `--` | space, as `--` is | kept |
| ‐ and the non-breaking hyphen | as `-` | space, as `-` is | kept |
| · ׳ ״ | part of a word | part of a word | kept |
| other symbols and punctuation, emoji | each a word of its own | the same | kept |

For all three, white space is that of Unicode (no-break and ideographic space, U+2028, ...) together
with the zero-width space and the control characters, NUL included, so no word ever holds a line
break. Invisible formatting (byte order mark, soft hyphen, direction marks, word joiner) is dropped
and the word around it stays whole. Zero-width joiners stay within words and emoji (a family, a flag
or a skin tone is one word) and are dropped where nothing is left to join. Bytes that are not
UTF-8 become U+FFFD. Text is not normalised (é and e + U+0301 differ), and Chinese, Japanese or Thai
text, written without spaces, is one word between two punctuation marks.

Where `ptb` differs from NLTK's `TreebankWordTokenizer`, which changed the sed rules:

- a comma or colon before a digit is split off (`10,000` is `10 , 000`, `4:06` is `4 : 06`); NLTK
  keeps the number whole, but may leave the second of two commas on its neighbour;
- text that is already tokenised keeps its closing `''`, which NLTK turns into an opening ` `` `
  after a space; `''` and ` `` ` glued to a word stay glued, NLTK splits them off;
- `cannot`, `gonna`, `'tis` and the like are split as whole words, at most the first letter a
  capital; NLTK splits `CANNOT` and the `cannot` of `cannot-do` too; `d'ye` is `d' ye`, with NLTK
  `d 'ye`;
- `shouldn't've` is `should n't 've`, with NLTK `shouldn't 've`; beside a quote (`'n't`, `a's'`)
  NLTK does not split a clitic at all;
- NLTK has no rule for Unicode, so quotes, dashes and emoji stay on their words.

On SNLI the first two kinds are all there is: 99.96% of the sentences get the same words.
From the sed script itself `ptb` differs, on ASCII text, in one case: of two such words in a row
(`gonna gonna`) the script splits the first only.
`benchmarks/tokenizer_agreement.py` measures the agreement and lists the differences by kind.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dsa_keras.errors import ConfigError, nearest

if TYPE_CHECKING:
    import tensorflow as tf

TOKENIZERS: tuple[str, ...] = ("ptb", "kim", "whitespace")
"""The names of the tokenisers."""

_CHUNK = 4096

_Rules = tuple[tuple[str, str], ...]

# RE2 cannot intersect classes, but the complement of a union can: neither ASCII nor part of a word.
_SYMBOL = r"[^[:ascii:]\p{L}\p{M}\p{N}\p{Z}\p{C}\x{B7}\x{5F3}\x{5F4}]"
_SYMBOL_WITH_MODIFIERS = _SYMBOL + r"[\p{M}\x{1F3FB}-\x{1F3FF}\x{E0020}-\x{E007F}]*"
_FLAG = r"[\x{1F1E6}-\x{1F1FF}]{2}"
_SYMBOLS: _Rules = (
    (
        rf"{_FLAG}|{_SYMBOL_WITH_MODIFIERS}(?:\x{{200D}}{_SYMBOL_WITH_MODIFIERS})*",
        r" \0 ",
    ),
)

_OPENING = r"\x{201C}\x{201E}\x{201F}"  # “ „ ‟
_CLOSING = r"\x{201D}"  # ”
_ELLIPSIS = r"\x{2026}"  # …
_DASHES = r"\x{2013}-\x{2015}"  # – — ―
_HYPHENS = r"\x{2010}\x{2011}"  # ‐ and the non-breaking one
_APOSTROPHES: _Rules = ((r"[\x{2018}-\x{201B}\x{B4}]", "'"),)  # ‘ ’ ‚ ‛ ´

SPACE_RULES: _Rules = (
    (
        r"[\x{AD}\x{61C}\x{180E}\x{200E}\x{200F}\x{202A}-\x{202E}\x{2060}-\x{206F}\x{FEFF}"
        r"\x{FFF9}-\x{FFFB}]",
        "",
    ),
    (r"[\p{Z}\p{Cc}\x{200B}]+", " "),
)
JOINER_RULES: _Rules = (
    (r"(^| )[\x{200C}\x{200D}]+", r"\1"),
    (r"[\x{200C}\x{200D}]+( |$)", r"\1"),
)

PTB_RULES: _Rules = (
    *_APOSTROPHES,
    (rf"[{_OPENING}]", " `` "),
    (_ELLIPSIS, "..."),
    (rf"[{_DASHES}]", " -- "),
    (rf"[{_HYPHENS}]", "-"),
    # Opening double quotes; those that are left are closing ones.
    (r'^"', "`` "),
    (r'([ (\[{<])"', r"\1 `` "),
    (r"\.\.\.", " ... "),
    (r"[,;:@#$%&]", r" \0 "),
    # The final period, before its closing quotes and brackets become words.
    (rf"""([^.])\.([\])}}>"'{_CLOSING}]*) *$""", r"\1 .\2 "),
    (r"[?!\[\](){}<>]|--", r" \0 "),
    (rf'["{_CLOSING}]', " '' "),
    *_SYMBOLS,
    # Two spaces for one and a pair at the ends: the rules below use up the spaces around a word.
    (r" ", "  "),
    (r"^", "  "),
    (r"$", "  "),
    (r"([^'])' ", r"\1 ' "),
    # One rule a clitic, in the order of the sed script: shouldn't've has two.
    (r"'[sSmMdD] ", r" \0"),
    (r"'ll ", r" \0"),
    (r"'re ", r" \0"),
    (r"'ve ", r" \0"),
    (r"n't ", r" \0"),
    (r"'LL ", r" \0"),
    (r"'RE ", r" \0"),
    (r"'VE ", r" \0"),
    (r"N'T ", r" \0"),
    (r" ([Cc]an)(not) ", r" \1 \2 "),
    (r" ([Dd]')(ye) ", r" \1 \2 "),
    (r" ([Gg]im|[Ll]em)(me) ", r" \1 \2 "),
    (r" ([Gg]on|[Ww]an)(na) ", r" \1 \2 "),
    (r" ([Gg]ot)(ta) ", r" \1 \2 "),
    (r" ([Mm]ore)('n) ", r" \1 \2 "),
    (r" ('[Tt])(is|was) ", r" \1 \2 "),
)

# With the ASCII letters lower-cased first, the one left that a Turkish locale would change.
LOWER_RULES: _Rules = ((r"İ", "i\N{COMBINING DOT ABOVE}"),)

KIM_RULES: _Rules = (
    *_APOSTROPHES,
    (rf"[{_OPENING}{_CLOSING}{_ELLIPSIS}{_DASHES}{_HYPHENS}]", " "),
    (r"[^A-Za-z0-9(),!?'`[:^ascii:]]", " "),
    *_SYMBOLS,
)


def rules_of(tokenizer: str, lowercase: bool = False) -> tuple[_Rules, bool]:
    """The rules of a tokeniser, and whether letters are lower-cased after them.

    Raises:
        ConfigError: if there is no such tokeniser.
    """
    if tokenizer not in TOKENIZERS:
        raise ConfigError(
            f"there is no tokenizer {tokenizer!r}",
            where="tokenizer",
            hint=nearest(str(tokenizer), TOKENIZERS),
        )
    rules = {"ptb": PTB_RULES, "kim": KIM_RULES, "whitespace": ()}[tokenizer]
    lowers = lowercase or tokenizer == "kim"
    return (*rules, *LOWER_RULES) if lowers else rules, lowers


def tokenize_tensor(texts: Any, tokenizer: str, lowercase: bool = False) -> tf.RaggedTensor:
    """Splits a batch of texts into words, inside a graph or eagerly.

    Args:
        texts: string tensor of shape `(batch,)`, or what `tf.convert_to_tensor` makes one of.
        tokenizer: one of `TOKENIZERS`.
        lowercase: whether letters are lower-cased once the words are split; `kim` always does.

    Returns:
        A ragged string tensor of shape `(batch, words)`. A text without words gives an empty row.

    Raises:
        ConfigError: if there is no such tokeniser, or `texts` is known not to have one axis.
    """
    import tensorflow as tf

    rules, lowers = rules_of(tokenizer, lowercase)
    texts = tf.convert_to_tensor(texts, dtype=tf.string)
    if texts.shape.rank not in (1, None):
        raise ConfigError(
            f"texts have shape {texts.shape}, not (batch,)", where="texts", hint="Pass one axis"
        )
    texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
    texts = _replaced(_replaced(texts, SPACE_RULES), rules)
    if lowers:
        # The second op follows the locale of the process, in which I may become a dotless ı: ASCII
        # letters go first, by the op that has no locale.
        texts = tf.strings.lower(tf.strings.lower(texts), encoding="utf-8")
    return tf.strings.split(_replaced(texts, JOINER_RULES))


def tokenize(
    texts: Sequence[str], tokenizer: str = "ptb", lowercase: bool = False
) -> list[list[str]]:
    """Splits texts into words.

    Args:
        texts: the texts; a lone string is refused, since each of its letters would be a text.
        tokenizer: one of `TOKENIZERS`; the module's documentation says what each does.
        lowercase: whether letters are lower-cased once the words are split; `kim` always does.

    Returns:
        The words of each text, an empty list for a text without words.

    Raises:
        ConfigError: if there is no such tokeniser, or `texts` is not a sequence of strings.

    Example:
    ```python
    tokenize(["They can't, can they?"])  # [["They", "ca", "n't", ",", "can", "they", "?"]]
    ```
    """
    if isinstance(texts, str | bytes):
        raise ConfigError(
            f"expected a sequence of str, not one {type(texts).__name__}",
            where="texts",
            hint="Put a single text in a list: [text]",
        )
    graph = _graph(tokenizer, lowercase)
    words: list[list[str]] = []
    for start in range(0, len(texts), _CHUNK):
        chunk = [_checked(text, start + i) for i, text in enumerate(texts[start : start + _CHUNK])]
        flat, splits = graph(chunk)
        # No word holds a line break, so one decode serves the whole chunk.
        decoded = b"\n".join(flat.numpy()).decode("utf-8").split("\n")
        ends = splits.numpy().tolist()
        words.extend(decoded[a:b] for a, b in itertools.pairwise(ends))
    return words


def _replaced(texts: Any, rules: _Rules) -> Any:
    import tensorflow as tf

    for pattern, rewrite in rules:
        texts = tf.strings.regex_replace(texts, pattern, rewrite)
    return texts


@functools.cache
def _graph(tokenizer: str, lowercase: bool) -> Callable[[Any], tuple[Any, Any]]:
    import tensorflow as tf

    rules_of(tokenizer)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def graph(texts: Any) -> tuple[Any, Any]:
        with tf.device("CPU"):
            words = tokenize_tensor(texts, tokenizer, lowercase)
        return words.values, words.row_splits

    return graph


def _checked(text: str, index: int) -> bytes:
    if not isinstance(text, str):
        raise ConfigError(
            f"expected str, not {type(text).__name__}",
            where=f"texts[{index}]",
            hint="Every text must be a str; leave out missing values",
        )
    return utf8(text)


def utf8(text: str) -> bytes:
    """UTF-8, with U+FFFD for each lone surrogate, as broken JSON escapes leave behind."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        utf16 = text.encode("utf-16-le", "surrogatepass")
        return utf16.decode("utf-16-le", "replace").encode("utf-8")
