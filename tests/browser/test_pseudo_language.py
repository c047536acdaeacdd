"""With a third more text nothing is cut off on a telephone, and nothing runs over its edge."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.helpers import PHONE, WIDER, screenshot, turn_to
from tests.extensions.parts_of_pages import MISTAKES
from tests.extensions.parts_of_pages import PARTS as OF_EXTENSIONS
from tests.pages.conftest import NAMES
from tests.pages.test_pseudo_language import MODEL, SOURCE
from tests.pages.test_pseudo_language import PARTS as OF_THE_KERNEL

WIDTH = PHONE["width"]
PARTS = OF_THE_KERNEL | OF_EXTENSIONS
# An element whose own text is wider or higher than it, and which hides what runs over without an ellipsis.
CUT = """() => [...document.querySelectorAll("body *")].filter((element) => {
  const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.includes("⟦"));
  const style = own && getComputedStyle(element);
  return own && style.textOverflow !== "ellipsis" && style.overflow !== "visible" && element.clientWidth > 1
    && (element.scrollWidth > element.clientWidth + 1 || element.scrollHeight > element.clientHeight + 2);
}).map((element) => element.textContent)"""
RUNS_OVER = """() => [...document.querySelectorAll("body *")].filter((element) => {
  const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.includes("⟦"));
  if (!own || element.closest("[data-testid=stSidebar]")) return false;
  for (let box = element.parentElement; box; box = box.parentElement) {
    const scrolls = ["auto", "scroll"].includes(getComputedStyle(box).overflowX);
    if (scrolls && box.scrollWidth > box.clientWidth) return false;
  }
  const place = element.getBoundingClientRect();
  return place.width > 0 && place.right > innerWidth + 1;
}).map((element) => element.textContent)"""


def faults(page: Page) -> list[str]:
    """Sentences that are cut off or run over the edge."""
    return [*page.evaluate(CUT), *page.evaluate(RUNS_OVER)]


# The most unlike: prose, a form, cards, tables, two slots.
SOME = (
    *("step", "attention table", "compare checkpoints", "doctor parameters", "forcing", "masks one_row"),
    *("search tree", f"wrong {MISTAKES[0]}", "inside lens", "positions sentence", "matters logit"),
)


def address(part: str) -> str:
    """Where a part of a page is, in the pseudo-language."""
    script, parameters = PARTS[part]
    asked = {"model": MODEL, "src": SOURCE, "lang": "qps", **parameters}
    return f"/{NAMES[script]}?" + "&".join(f"{name}={value}" for name, value in asked.items())


@pytest.mark.parametrize("parts", [SOME, pytest.param(tuple(PARTS), marks=pytest.mark.deep)], ids=["some", "every"])
def test_nothing_is_cut_or_wider_than_a_phone(new_page, server, parts):
    phone = new_page(viewport=PHONE, visitor="of another language")  # else the next test's page would speak it, too
    for part in parts:
        turn_to(phone, server.url + address(part))
        expect(phone.get_by_test_id("stMain")).to_contain_text("⟦")
        assert not faults(phone), part
        assert max(phone.evaluate(WIDER)) <= 0, part
        screenshot(phone, f"qps-{part}-{WIDTH}", whole=True)
