"""What a spreadsheet would compute is text in it."""

from transformer.text.cells import cell


def test_what_looks_like_a_formula_gets_an_apostrophe_and_other_texts_stay_as_they_are():
    for text in ("=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "\n=1", "＝1", "＋1", "－1", "＠x"):
        assert cell(text) == f"'{text}"
    for text in ("", "1+1", "a=b", "'=1", " =1"):
        assert cell(text) == text
