"""An uploaded model opens for who has its link alone; a broken file of it is named, left out, and never markup."""

import re

from playwright.sync_api import expect

from tests.browser import foreign_models
from tests.browser.helpers import PHONE, open_page, wait_for_idle
from tests.browser.story import SETTLED_MS

STARTS_MS = 90_000  # the process that reads imports torch, beside whatever else runs here
READ = "Open these files"


def test_a_broken_file_is_left_out_and_the_model_opens(server, new_page, tmp_path):
    foreign_models.tutorial(tmp_path)
    (tmp_path / "<img src=x onerror=alert(1)>.pt").write_bytes(b"<html>404</html>")
    page = new_page(viewport=PHONE, color_scheme="dark")
    open_page(page, f"{server.url}/open")
    zone = page.get_by_test_id("stMain")
    assert zone.get_by_text("Upload a model").bounding_box()["y"] < zone.get_by_role("combobox").bounding_box()["y"]
    zone.locator("input[type=file]").set_input_files(sorted(tmp_path.iterdir()))
    expect(zone.get_by_text("lesson.pt")).to_be_visible(timeout=SETTLED_MS)
    zone.get_by_role("button", name=READ).click()
    alert = zone.get_by_test_id("stAlert")
    expect(alert).to_have_text(re.compile(r"^<img src=x onerror=alert\(1\)>\.pt: is a web page"), timeout=STARTS_MS)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    zone.get_by_role("button", name="Leave it out").first.click()
    expect(alert).to_have_count(0, timeout=SETTLED_MS)
    wait_for_idle(page)  # until then the button stands there twice, as it was and as it will be
    zone.get_by_role("button", name=READ).click()
    main = page.get_by_test_id("stMain")
    expect(main).to_contain_text("6 questions still need an answer", timeout=STARTS_MS)  # its tokenizer lay beside it
    expect(page).to_have_url(re.compile(r"/open\?model=upload%3A[\w-]{22}$"))
    expect(main).to_contain_text("Only people with this page's address can see the model")

    other = new_page()
    open_page(other, f"{server.url}/open")
    other.get_by_role("combobox", name="File or folder").click()
    expect(other.get_by_role("option", name="lesson")).to_have_count(0)
    open_page(other, page.url)  # but who has the link sees it
    expect(other.get_by_test_id("stMain")).to_contain_text("6 questions still need an answer", timeout=SETTLED_MS)
