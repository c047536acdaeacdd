"""A server without an extension, whose folder was deleted: every explore page opens in a browser."""

import pytest
from playwright.sync_api import expect

from tests.browser.idle import IDLE_MS, wait_for_idle
from tests.deleted import EXTENSIONS, without
from tests.source_code import ROOT
from tools.serve import serve

PAGES = sorted(path.stem for path in (ROOT / "pages" / "explore").glob("*.py"))


@pytest.mark.parametrize(
    "names",
    [pytest.param(EXTENSIONS, id="all"), *(pytest.param((one,), id=one, marks=pytest.mark.deep) for one in EXTENSIONS)],
)
def test_every_explore_page_opens(tmp_path, new_page, names):
    folder = without(names, tmp_path / "copy")
    with serve(folder / "app.py", log=tmp_path / "log", folder=folder) as running:
        page = new_page(locale="en-US")
        for name in PAGES:
            page.goto(f"{running.url}/{name}?model=reverse&src=glass")
            expect(page.locator("[data-testid=stMain] h1")).to_be_visible(timeout=3 * IDLE_MS)
            wait_for_idle(page)
            expect(page.locator("[data-testid=stException]")).to_have_count(0)
        assert "Traceback" not in running.log_text()
