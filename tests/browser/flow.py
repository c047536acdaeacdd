"""What the tests of the flow view share: reaching its parts, and what it should draw, computed with numpy."""

import re
from xml.etree import ElementTree

import numpy as np
from playwright.sync_api import expect

from tests.browser.flow_app import example
from tests.browser.helpers import saved, wait_for_idle

THRESHOLD = 0.05
SVG = "{http://www.w3.org/2000/svg}"


def choose(page, name):
    page.locator("[data-testid=stSidebar]").get_by_text(name, exact=True).click()
    wait_for_idle(page)


def token(page, side, index):
    return page.locator(f".gf-flow-{side} .gf-flow-token").nth(index)


def expect_view(page, **values):
    for name, value in values.items():
        expect(page.locator(".gf-flow")).to_have_attribute(f"data-{name}", str(value))


def expected(name, *, heads=None, query=None, key=None, threshold=THRESHOLD):
    """The lines that should be drawn: {(head, query, key): weight}, all counted from 1."""
    weights, allowed = example(name)
    found = np.argwhere((np.rint(weights * 65_535) / 65_535 >= threshold) & (weights > 0) & allowed)
    return {
        (int(h) + 1, int(q) + 1, int(k) + 1): float(weights[h, q, k])
        for h, q, k in found
        if (heads is None or h in heads) and query in (None, q) and key in (None, k)
    }


def save(page, name):
    content, file = saved(page, page, name)
    assert file == f"flow.{name.lower()}"
    return content


def drawn(page):
    """The lines that are drawn, as the saved picture has them: (head, query, key), counted from 1."""
    picture = ElementTree.fromstring(save(page, "SVG").decode())
    legend, stage = picture.findall(f"{SVG}g")
    names = [int(text.text.split()[1]) for text in legend.iter(f"{SVG}text")]
    heads = dict(zip((box.get("fill") for box in legend.iter(f"{SVG}rect")), names, strict=True))
    lines, *columns = stage.findall(f"{SVG}g")
    rows = [[float(text.get("y")) - 0.35 * float(column.get("font-size")) for text in column] for column in columns]
    found = set()
    for path in lines.iter(f"{SVG}path"):
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", path.get("d"))]
        ends = zip(rows, (numbers[1], numbers[-1]), strict=True)
        query, key = (int(np.abs(np.array(centres) - y).argmin()) + 1 for centres, y in ends)
        found.add((heads[path.get("stroke")], query, key))
    return found


def painted_pixels(page):
    return page.locator(".gf-flow-canvas").evaluate(
        """canvas => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data
             .reduce((sum, value, place) => sum + (place % 4 === 3 && value > 0 ? 1 : 0), 0)"""
    )
