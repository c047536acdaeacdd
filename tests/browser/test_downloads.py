"""A chart is saved as CSV, picture or page with exact numbers, and no hostile label in it is markup or formula."""

import csv
import io
import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
from PIL import Image
from playwright.sync_api import expect

from glassformer import charts
from tests.browser.components import FIRST_CHART_MS, frame, plot
from tests.browser.figures import ALLOWED, COUNT, ENTROPIES, HOSTILE, REASON, SHARES, WEIGHTS
from tests.browser.helpers import saved
from tests.browser.idle import wait_for_rest

FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")


def table(page, key):
    """The data as two readers see it, which must agree: a list of dicts, all text."""
    content, name = saved(page, frame(page, key), "CSV")
    assert name == f"{key}.csv"
    assert content.startswith(b"\xef\xbb\xbf")
    rows = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    options = {"encoding": "utf-8-sig", "dtype": str, "keep_default_na": False, "lineterminator": None}
    assert pd.read_csv(io.BytesIO(content), **options).to_dict("records") == rows
    return rows


def safe(text):
    """A text as it has to stand in a table that a spreadsheet may open."""
    return f"'{text}" if FORMULA.match(text) else text


def test_all_charts_are_saved_cell_by_cell_and_exactly_and_no_label_is_markup(figures, new_page, tmp_path):
    bars_curves_lines_and_panels_are_saved_as_they_are_named(figures)
    for key in ("plain_map", "log_map"):
        rows = table(figures, key)
        assert list(rows[0]) == ["<i>Query</i> number", "<i>Query</i>", "'=Key number", "'=Key", "weight", "note"]
        for (query, place), row in zip(np.ndindex(COUNT, COUNT), rows, strict=True):
            number, piece, key_number, key_piece, value, note = row.values()
            weight = WEIGHTS[query, place]
            assert (number, piece) == (str(query + 1), safe(HOSTILE[query]))
            assert (key_number, key_piece) == (str(place + 1), safe(HOSTILE[place]))
            if not ALLOWED[query, place]:
                assert (value, note) == ("", REASON)
            elif np.isnan(weight):
                assert (value, note) == ("", "not a finite number")
            else:
                assert (np.float32(value), note) == (weight, "")  # exactly, although it is short
                assert len(value.lstrip("0.").split("e")[0]) <= 9
    no_label_is_markup_on_the_page_in_a_picture_or_in_an_exported_page(figures, new_page, tmp_path)


def bars_curves_lines_and_panels_are_saved_as_they_are_named(figures):
    bars = table(figures, "bars")
    assert [row["token"] for row in bars] == [*HOSTILE[20:24], *HOSTILE[:4]]
    assert [float(row["probability"]) for row in bars] == SHARES.tolist()
    assert [row["note"] for row in bars] == ["", "chosen", *[""] * 6]
    curve = table(figures, "curve")
    assert [row["text"] for row in curve] == [safe(piece) for piece in HOSTILE]
    assert [float(row["Entropy (bits)"]) for row in curve] == ENTROPIES.tolist()
    assert [row["Step"] for row in curve] == [str(step) for step in range(1, COUNT + 1)]
    lines = table(figures, "lines")
    assert [(row["series"], row["Epoch"], row["Loss (nats per token)"]) for row in lines] == [
        ("Dev loss", "1", "2.5"), ("Dev loss", "2", "2.25"), ("Dev loss", "3", "2.125"),
        ("Training loss", "1", "3"), ("Training loss", "2", ""), ("Training loss", "3", "2"),
    ]  # fmt: skip
    panels = table(figures, "panels")
    assert [row["series"] for row in panels] == ["first"] * 16 + ["second"] * 16 + ["line"] * 2
    second = np.array([row["second"] for row in panels[16:32]], dtype=np.float32).reshape(4, 4)
    np.testing.assert_array_equal(second, WEIGHTS[:4, 4:8])
    assert [panels[17]["Row"], panels[17]["Two"], panels[17]["One"]] == ["<s>", "</s>", ""]
    stated = table(figures, "stated")
    assert [list(row.values()) for row in stated] == [["'=1+1", "2"], ["▁x", "-0.5"], ["'-", ""]]
    assert list(stated[0]) == ["what", "'=how much"]


def pictures_have_the_theme_s_background(page):
    for is_dark in (True, False):
        page.emulate_media(color_scheme="dark" if is_dark else "light")
        expect(page.locator(".gf-chart-frame").first).to_have_attribute("data-theme", "dark" if is_dark else "light")
        wait_for_rest(page)
        content, name = saved(page, frame(page, "curve"), "PNG")
        assert name == "curve.png"
        picture = Image.open(io.BytesIO(content)).convert("L")
        assert (picture.getpixel((2, 2)) < 60) is is_dark
        assert picture.width == 2 * round(plot(page, "curve").bounding_box()["width"])
        assert saved(page, frame(page, "curve"), "SVG")[0].startswith(b"<svg")


def no_label_is_markup_on_the_page_in_a_picture_or_in_an_exported_page(figures, new_page, tmp_path):
    pictures_have_the_theme_s_background(figures)
    assert figures.evaluate("window.hacked") is None
    assert figures.locator(".gf-chart-frame :is(img, a[href*=example])").count() == 0
    expect(plot(figures, "plain_map").locator(".gtitle")).to_have_text("=A <b>map</b> of %{pieces}")
    svg = ElementTree.fromstring(saved(figures, frame(figures, "plain_map"), "SVG")[0])
    names = {element.tag.rpartition("}")[2] for element in svg.iter()}
    assert "text" in names
    assert not names & {"script", "img", "a", "s", "br", "b"}
    texts = ["".join(element.itertext()) for element in svg.iter() if element.tag.endswith("}text")]
    assert {"</script><scr…", "<b>x</b>", "&lt;", "=A <b>map</b> of %{pieces}"} <= set(texts)
    figure = charts.heatmap(
        np.eye(COUNT, dtype=np.float32), queries=HOSTILE, keys=HOSTILE,
        title="</script><script>window.hacked=1</script>", mask_reason="</script><script>window.hacked=1</script>",
        value_name="</script><script>window.hacked=1</script>", allowed=ALLOWED,
    )  # fmt: skip
    target = tmp_path / "map.html"
    target.write_text(figure.to_html(include_plotlyjs=True), encoding="utf-8")
    page = new_page()
    page.goto(target.as_uri())
    expect(page.locator(".gtitle")).to_have_text("</script><script>window.hacked=1</script>", timeout=FIRST_CHART_MS)
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
