"""The pseudo-language lengthens what people read, and nothing that a browser reads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer.i18n.pseudo import longer, marked


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz ,.", min_size=1, max_size=80))
def test_a_sentence_is_a_third_longer(text):
    assert len(longer(text)) >= len(text) + round(len(text) / 3) - 1


@pytest.mark.parametrize(
    "kept",
    ["<extra></extra>", "<b>", "&#36;", ":material/info:", "{value:.3f}", "%{y:.3f}", "{{", "`d_model`", "$\\sqrt{d}$"],
)
def test_what_a_browser_reads_is_kept(kept):
    assert kept in longer(f"Look at {kept} here")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("One.", "⟦One.⟧"), ("### One", "### ⟦One⟧"), ("- One", "- ⟦One⟧"), ("1. One", "1. ⟦One⟧"), ("", "⟦⟧")],
)
def test_brackets_stand_behind_what_makes_a_block(text, expected):
    assert marked(text, nested=False) == expected
