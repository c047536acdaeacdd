"""What pages of the app save: whole tables, exact numbers, files that say what they are of."""

import io
import re
import urllib.parse

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from glassformer.charts.heatmap import MOST_EXACT
from glassformer.runs.loading import SHIPPED
from tests.browser.helpers import chart_menu, turn_to, wait_for_idle
from tests.browser.idle import wait_for_rest
from tests.browser.story import wait_for_charts
from transformer.checkpoint.load import load

LONG = "如果明天下雨，我们就待在家里。" * 10


@pytest.fixture(scope="module")
def checkpoint():
    return load(SHIPPED / "zh-en")


def saved(page, part):
    """The table that a chart's menu saves, and the file's name."""
    with page.expect_download() as download:
        chart_menu(page.locator(f".st-key-{part}"), "CSV")
    content = download.value.path().read_bytes()
    assert content.startswith(b"\xef\xbb\xbf")
    return pd.read_csv(io.BytesIO(content), encoding="utf-8-sig"), download.value.suggested_filename


def weights(table, shape):
    return table["weight"].to_numpy().astype(np.float32).reshape(shape)


def test_all_heads_are_saved_whole_and_exactly(server, tab, checkpoint):
    trace = checkpoint.run(checkpoint.card.first_example())
    turn_to(tab, f"{server.url}/attention?model=zh-en")
    table, name = saved(tab, "overview_cross")
    np.testing.assert_array_equal(weights(table, trace.cross.shape), trace.cross)
    assert set(table["checkpoint"]) == {"zh-en"}
    assert set(table["sentence"]) == {trace.query.source}
    assert name == "zh-en_我喜欢喝咖啡_overview-cross_cross-attention-3-layers-4-heads.csv"
    other, other_name = saved(tab, "overview_encoder")
    np.testing.assert_array_equal(weights(other, trace.encoder_self.shape), trace.encoder_self)
    assert other_name != name


def test_flow_saves_every_weight_of_every_head(server, tab, checkpoint):
    trace = checkpoint.run(checkpoint.card.first_example())
    turn_to(tab, f"{server.url}/attention?model=zh-en&panel=flow&layer=2")
    tab.get_by_role("button", name="Head 2", exact=True).click()  # a hidden head is saved, too
    wait_for_idle(tab)  # a rerun gives the file another address
    table, name = saved(tab, "flow")
    np.testing.assert_array_equal(weights(table, trace.cross[1].shape), trace.cross[1])
    np.testing.assert_allclose(table.groupby(["head", "query number"])["weight"].sum(), 1, atol=1e-6)
    assert name == "zh-en_我喜欢喝咖啡_flow_cross-attention-layer-2.csv"


def test_a_map_that_is_rounded_for_the_browser_is_saved_exactly(server, tab, checkpoint):
    trace = checkpoint.run(LONG)
    assert trace.encoder_self[0, 0].size > MOST_EXACT
    source = urllib.parse.quote(LONG)
    turn_to(tab, f"{server.url}/attention?panel=head&kind=encoder&layer=1&head=2&src={source}")
    table, name = saved(tab, "head_map")
    np.testing.assert_array_equal(weights(table, trace.encoder_self[0, 1].shape), trace.encoder_self[0, 1])
    assert re.fullmatch(r"zh-en_如果明天.*-[0-9a-f]{8}_head-map_encoder-self-attention-layer-1-head-2\.csv", name)


def test_what_the_browser_makes_says_what_it_is_of(server, tab, checkpoint):
    trace = checkpoint.run(checkpoint.card.first_example())
    turn_to(tab, f"{server.url}/step?model=zh-en&how=sampling&seed=3&temp=2")
    wait_for_idle(tab)
    table, name = saved(tab, "candidates")
    assert set(table["decoding"]) == {"sampling temperature=2 top_k=0 top_p=1 seed=3"}
    assert set(table["chart"]) == {"Step 1: candidates for the next piece"}
    assert name.startswith("zh-en_我喜欢喝咖啡_sampling-temperature-2-")
    np.testing.assert_allclose(
        table["probability"][:10].sum(), np.exp(np.sort(trace.log_probs[0])[-10:]).sum(), rtol=1e-4
    )
    turn_to(tab, f"{server.url}/positions?model=zh-en")
    table, name = saved(tab, "position_table")
    assert "sentence" not in table
    assert name.startswith("zh-en_position-table_")


def test_a_picture_has_the_letters_that_the_screen_has(server, tab, tmp_path):
    turn_to(tab, f"{server.url}/inside?inside=lens")
    wait_for_charts(tab)
    with tab.expect_download() as download:
        chart_menu(tab.locator(".st-key-lens_map"), "PNG")
    download.value.save_as(tmp_path / "saved.png")
    tab.locator(".st-key-lens_map .gf-plot").screenshot(path=tmp_path / "seen.png")
    seen, saved_picture = (Image.open(tmp_path / name).convert("L") for name in ("seen.png", "saved.png"))
    ends = []
    for picture in (seen, saved_picture.resize(seen.size)):
        title = np.asarray(picture)[:34]
        ends.append(int(np.flatnonzero((title < title.max() - 60).any(axis=0))[-1]))
    assert abs(ends[0] - ends[1]) <= 3


def test_all_heads_of_a_long_sentence_fill_the_width(server, tab):
    for length, least in ((5, 0.9), (9, 0.9)):
        source = urllib.parse.quote("如果明天下雨，我们就待在家里。" * length)
        turn_to(tab, f"{server.url}/attention?src={source}&max=40")
        wait_for_charts(tab)
        wait_for_rest(tab)
        chart, room = (tab.locator(part).first.bounding_box() for part in (
            ".st-key-overview_cross .gf-chart", "[data-testid=stMainBlockContainer] > *"
        ))  # fmt: skip
        assert chart["width"] > least * room["width"]
