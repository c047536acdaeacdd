"""Text of a reader or a model is shown letter by letter by Streamlit's Markdown, which would rewrite it."""

import re
import string

from hypothesis import example, given
from hypothesis import strategies as st

from glassformer.shared.drawing import plain, with_code
from transformer.i18n import Sentence, say

JOINER = "\u2060"
# What Streamlit 1.67 rewrites in text although every mark in it is escaped (StreamlitMarkdown.js).
REWRITTEN = (
    re.compile(r"(^|\s)(<->|->|<-|--|>=|<=|~=)(\s|$)"),
    re.compile(r":(streamlit|material_\w+|material/\w+):"),
    re.compile(r"https?://|www\.|[-.\w+]@[-\w]", re.IGNORECASE),
)
PARTS = (
    "<-", "->", "--", "<->", ">=", "~=", ":", "streamlit", "material_home", "/", "HTTP", "www", ".", "@", " ", "a",
)  # fmt: skip
RISKY = st.lists(st.sampled_from(PARTS), max_size=12).map("".join)


def shown(markdown: str) -> str:
    """What Markdown shows of a text whose marks are all escaped, word joiners left out as nobody sees them."""
    return re.sub(r"\\(.)", r"\1", markdown).replace(JOINER, "")


@given(st.text() | RISKY)
@example("see www.example.org http://x.org a@b.co HTTPS://x -- -> <- <-> >= <= ~= :streamlit: :material_home:")
@example("<img src=x onerror=alert(1)> $x^2$ **b** `c` [a](http://b) :red[x] &lt; | # - 1. > ~~d~~")
def test_every_letter_is_shown_on_one_line_no_mark_stands_alone_and_streamlit_rewrites_nothing(text):
    assert shown(plain(text)) == " ".join(text.split()).replace(JOINER, "")
    assert not set(re.sub(r"\\.", "", plain(text))) & set(string.punctuation)
    assert len(plain(text).splitlines()) <= 1
    visible = re.sub(r"\\(.)", r"\1", plain(text))
    assert not any(pattern.search(visible) for pattern in REWRITTEN)


@given(st.text() | RISKY)
@example("set `mask=None` -> `q @ k` or `")
@example("`` and ` `")
def test_code_is_what_stands_between_two_backticks_and_the_rest_letter_by_letter(text):
    found = with_code(text)
    read = re.sub(r"\\(.)|(`[^`]+`)", lambda one: one[1] or one[2], found)
    assert read.replace(JOINER, "") == " ".join(text.split()).replace(JOINER, "")
    assert not re.search(r"[!-/:-@\[-`{-~]", re.sub(r"\\.|`[^`]+`", "", found))


def test_code_in_a_sentence_stays_code_and_the_sentence_one():
    sentence = with_code(say("It was loaded with `strict=False`; it was frozen."))
    assert sentence == r"It was loaded with `strict=False`\; it was frozen\."
    assert isinstance(sentence, Sentence)
