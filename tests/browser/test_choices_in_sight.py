"""What is chosen can be read: menus are as wide as it, in large type, too, and cut nothing without a sign."""

from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.browser.helpers import comes_to, turn_to

FULL = {"width": 1920, "height": 1080}
SPOKEN = {"en": ("en-fr", "My little brother slept in the train."), "zh": ("zh-en", "他每天早上在公园里跑步。")}
PARTS = (
    "attention?panel=overview",
    "attention?panel=head&layer=2&head=2",
    "attention?panel=walk",
    "attention?panel=table",
    "masks?mask=causal",
    "masks?mask=cross",
    "positions?positions=sentence",
    "inside?inside=stream",
    "inside?inside=ffn",
    "inside?inside=pieces",
    "matters?matters=heads",
    "wrong?mistake=leak",
)
SOME = (PARTS[1], PARTS[5], PARTS[-1])  # most boxes in a row, the longest choices of masks, those of mistakes
BOXES = "[data-testid=stMain] [data-testid=stSelectbox] [role=combobox]"
CUT = "boxes => boxes.filter(box => box.scrollWidth > box.clientWidth).map(box => box.value)"
UNMARKED = """boxes => boxes.filter(box => box.scrollWidth > box.clientWidth
  && getComputedStyle(box).textOverflow !== "ellipsis").map(box => box.value)"""

# What stands in a box until something is typed, where the box is narrower.
TOO_LONG = """boxes => boxes.filter(box => {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = getComputedStyle(box).font;
  return !box.value && pen.measureText(box.placeholder).width > box.clientWidth;
}).map(box => box.placeholder)"""


def addresses(parts, language, options):
    """A part of a page after the other, of the model of a language."""
    model, source = SPOKEN[language]
    for part in parts:
        yield f"{part}&model={model}&src={quote(source)}&lang={language}{options}"


def test_a_class_reads_what_can_be_typed_into_a_box(server, new_page):
    page = new_page(viewport=FULL)
    for part in ("ffn", "pieces"):
        turn_to(page, f"{server.url}/inside?inside={part}&model=en-fr&lang=en&present=1")
        boxes = page.locator("[class*=controls_bar] input[placeholder]")
        expect(boxes.first).to_be_visible()
        comes_to(page, lambda boxes=boxes: boxes.evaluate_all(TOO_LONG), [])


@pytest.mark.parametrize("parts", [SOME, pytest.param(PARTS, marks=pytest.mark.deep)], ids=["some", "every"])
@pytest.mark.parametrize("language", SPOKEN)
def test_a_class_reads_every_choice(server, new_page, language, parts):
    page = new_page(viewport=FULL)
    for where in addresses(parts, language, "&present=1"):
        turn_to(page, f"{server.url}/{where}")
        expect(page.locator(":root.gf-present")).to_have_count(1)
        expect(page.locator(BOXES).first).to_be_visible()
        comes_to(page, lambda: page.locator(BOXES).evaluate_all(CUT), [])
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), where


def test_what_a_small_window_cuts_says_so(server, tab):
    for language in SPOKEN:
        turn_to(tab, f"{server.url}/{next(addresses(['masks?'], language, ''))}")
        expect(tab.locator(BOXES).first).to_be_visible()
        comes_to(tab, lambda: tab.locator(BOXES).evaluate_all(UNMARKED), [])
        assert tab.locator(".st-key-controls_bar").bounding_box()["height"] <= 44, language
