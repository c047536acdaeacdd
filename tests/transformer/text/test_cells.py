"""What a spreadsheet would compute is text in it."""

import pytest

from transformer.text.cells import cell


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "\n=1", "＝1", "＋1", "－1", "＠x"])
def test_what_looks_like_a_formula_gets_an_apostrophe(text):
    assert cell(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "1+1", "a=b", "'=1", " =1"])
def test_other_texts_stay_as_they_are(text):
    assert cell(text) == text
