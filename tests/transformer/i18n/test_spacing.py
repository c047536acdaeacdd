"""Chinese has no space between two Chinese characters, and keeps those of what was typed."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer.i18n import in_languages, joined, said, sentence


@pytest.mark.parametrize(
    ("template", "value", "expected"),
    [
        ("第 {v} 层的头", 3, "第 3 层的头"),
        ("第 2 层的 {v} 里", "交叉注意力", "第 2 层的交叉注意力里"),
        ("第 2 层的 {v} 里", "softmax", "第 2 层的 softmax 里"),
        ("写 {v} 时", "▁like", "写 ▁like 时"),
        ("{v} 个词元", 1234, "1234 个词元"),
        ("读 {v}。", "“我 喜欢”", "读“我 喜欢”。"),  # spaces that somebody typed stay
        ("{v} is {v}", "我", "我 is 我"),
        ("占 {v:.0%} 以上", 0.5, "占 50% 以上"),
        ("{{{v}}}", "我", "{我}"),
    ],
)
def test_a_space_goes_where_a_value_is_chinese(template, value, expected):
    assert sentence.chinese_filled(template, {"v": value}) == expected
    assert said(in_languages({"en": template, "zh": template}, v=value), "zh") == expected


def test_separators_are_full_width_between_chinese_texts():
    for separator, parts, expected in (
        (", ", ["掩码", "位置"], "掩码、位置"),
        (", ", ["a", "b"], "a, b"),
        (" ", ["看这里。", "再看那里。"], "看这里。再看那里。"),
        (" ", ["我", "喜欢"], "我 喜欢"),  # pieces
        ("\n", ["我", "喜欢"], "我\n喜欢"),
    ):
        assert said(joined(separator, parts), "zh") == expected


@given(st.lists(st.text(alphabet=string.ascii_letters + "我喜欢。 ，“", max_size=6), max_size=6))
def test_closing_up_takes_spaces_away_and_nothing_else(parts):
    closed = sentence.closed_up(parts)
    assert closed.replace(" ", "") == "".join(parts).replace(" ", "")
    assert sentence.closed_up([closed]) == closed
