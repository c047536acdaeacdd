"""The Attention page on a long sentence, without a browser: the colours of its mean map."""

import pytest

from tests.pages.reading import address, figure
from tests.pages.test_attention import ATTENTION, switch

LONG = "如果明天下雨，我们就待在家里。" * 7


def test_the_mean_of_a_long_sentence_is_logarithmic_until_the_reader_says_otherwise(open_page):
    test = open_page(ATTENTION, model="zh-en", panel="head", kind="cross", src=LONG, max=12)
    assert "logarithmic" in figure(test, "head_map")["data"][0]["colorbar"]["title"]["text"]
    assert "log" not in address(test)
    switch(test, "log_scale")
    assert figure(test, "head_map")["data"][0]["colorbar"]["title"]["text"] == "weight"
    assert address(test)["log"] == "0"
    again = open_page(
        ATTENTION, **{name: value[0] if isinstance(value, list) else value for name, value in address(test).items()}
    )
    assert figure(again, "head_map")["data"][0]["colorbar"]["title"]["text"] == "weight"


@pytest.mark.parametrize("view", [{"src": "我喜欢喝咖啡。"}, {"src": LONG, "layer": 1, "head": 2}])
def test_a_short_sentence_and_a_single_head_have_the_plain_scale(open_page, view):
    test = open_page(ATTENTION, model="zh-en", panel="head", kind="cross", max=12, **view)
    assert figure(test, "head_map")["data"][0]["colorbar"]["title"]["text"] == "weight"
