"""Saved tables are whole and exact and say what they are of; a saved picture has the letters of the screen."""

import io
import re
import urllib.parse

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from glassformer.charts.heatmap import MOST_EXACT
from glassformer.runs.loading import SHIPPED
from tests.browser.helpers import saved, turn_to, wait_for_idle
from tests.browser.story import wait_for_charts
from transformer.checkpoint.load import load

LONG = "如果明天下雨，我们就待在家里。" * 10


@pytest.fixture(scope="module")
def checkpoint():
    return load(SHIPPED / "zh-en")


def saved_table(page, part):
    """The table that a chart's menu saves, and the file's name."""
    content, name = saved(page, page.locator(f".st-key-{part}"), "CSV")
    assert content.startswith(b"\xef\xbb\xbf")
    return pd.read_csv(io.BytesIO(content), encoding="utf-8-sig"), name


def weights(table, shape):
    return table["weight"].to_numpy().astype(np.float32).reshape(shape)


def test_tables_are_whole_exact_and_named_after_what_they_are_of(server, page, checkpoint):
    trace = checkpoint.run(checkpoint.card.first_example())
    turn_to(page, f"{server.url}/attention?model=zh-en")
    table, name = saved_table(page, "overview_cross")
    np.testing.assert_array_equal(weights(table, trace.cross.shape), trace.cross)
    assert set(table["checkpoint"]) == {"zh-en"}
    assert set(table["sentence"]) == {trace.query.source}
    assert name == "zh-en_我喜欢喝咖啡_overview-cross_cross-attention-3-layers-4-heads.csv"
    turn_to(page, f"{server.url}/attention?model=zh-en&panel=flow&layer=2")
    page.get_by_role("button", name="Head 2", exact=True).click()  # a hidden head is saved, too
    wait_for_idle(page)  # a rerun gives the file another address
    table, name = saved_table(page, "flow")
    np.testing.assert_array_equal(weights(table, trace.cross[1].shape), trace.cross[1])
    assert name == "zh-en_我喜欢喝咖啡_flow_cross-attention-layer-2.csv"
    turn_to(page, f"{server.url}/step?model=zh-en&how=sampling&seed=3&temp=2")
    wait_for_idle(page)
    table, name = saved_table(page, "candidates")  # which the browser makes
    assert set(table["decoding"]) == {"sampling temperature=2 top_k=0 top_p=1 seed=3"}
    assert set(table["chart"]) == {"Step 1: candidates for the next token"}
    assert name.startswith("zh-en_我喜欢喝咖啡_sampling-temperature-2-")
    likeliest = np.exp(np.sort(trace.log_probs[0])[-10:]).sum()
    np.testing.assert_allclose(table["probability"][:10].sum(), likeliest, rtol=1e-4)
    trace = checkpoint.run(LONG)  # rounded for the browser
    assert trace.encoder_self[0, 0].size > MOST_EXACT
    source = urllib.parse.quote(LONG)
    turn_to(page, f"{server.url}/attention?panel=head&kind=encoder&layer=1&head=2&src={source}")
    table, name = saved_table(page, "head_map")
    np.testing.assert_array_equal(weights(table, trace.encoder_self[0, 1].shape), trace.encoder_self[0, 1])
    assert re.fullmatch(r"zh-en_如果明天.*-[0-9a-f]{8}_head-map_encoder-self-attention-layer-1-head-2\.csv", name)
    a_picture_has_the_letters_that_the_screen_has(server, page)


def a_picture_has_the_letters_that_the_screen_has(server, page):
    turn_to(page, f"{server.url}/inside?inside=lens")
    wait_for_charts(page)
    contents = (
        page.locator(".st-key-lens_map .gf-plot").screenshot(),
        saved(page, page.locator(".st-key-lens_map"), "PNG")[0],
    )
    seen, saved_picture = (Image.open(io.BytesIO(content)).convert("L") for content in contents)
    ends = []
    for picture in (seen, saved_picture.resize(seen.size)):
        title = np.asarray(picture)[:34]
        ends.append(int(np.flatnonzero((title < title.max() - 60).any(axis=0))[-1]))
    assert abs(ends[0] - ends[1]) <= 3
