"""Every language that a family knows has a name of its own."""

import pytest

from glassformer.extensions.tokenizers import languages
from glassformer.extensions.tokenizers.languages import language_name


@pytest.mark.parametrize("codes", [languages.MBART_50, languages.M2M100, languages.NLLB])
def test_every_code_has_a_name_and_no_two_have_the_same(codes):
    names = [language_name(code) for code in codes]
    assert len(set(names)) == len(codes)
    assert not set(names) & set(codes)


def test_scripts_are_told_apart_and_what_is_unknown_stays():
    assert language_name("zho_Hant") == "Chinese, traditional"
    assert language_name("deu_Latn") == "German"
    assert language_name("xx_YY") == "xx_YY"
