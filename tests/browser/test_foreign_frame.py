"""In a frame of another site, which its operator named and a browser gives no storage, pages step and rooms work."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from playwright.sync_api import expect

from glassformer.server.server_options import FRAME_ANCESTORS
from tests.browser.helpers import menu_link
from tests.browser.test_room import BAR, FOLLOWS, opened
from tools.serve import HOST, serve


class Outside(BaseHTTPRequestHandler):
    """A page of a site of its own: its path is the address that it frames."""

    def do_GET(self):
        page = f'<iframe src="{self.path[1:]}" width="1200" height="700"></iframe>'.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def outside():
    """That site: to a browser, localhost is another one than 127.0.0.1."""
    with ThreadingHTTPServer((HOST, 0), Outside) as site:
        Thread(target=site.serve_forever, daemon=True).start()
        yield f"http://localhost:{site.server_port}"
        site.shutdown()


@pytest.fixture(scope="module")
def framed_server(tmp_path_factory, outside):
    log = tmp_path_factory.mktemp("framed") / "app.log"
    with serve(log=log, environment={FRAME_ANCESTORS[0]: outside}) as running:
        yield running


def framed(page, outside, address):
    """The app at an address in a frame of that site."""
    page.goto(f"{outside}/{address}")
    return page.frame_locator("iframe")


def test_a_page_steps_there_and_a_student_is_counted_and_follows_the_teacher(framed_server, outside, new_page):
    frame = framed(new_page(fresh=True), outside, f"{framed_server.url}/step?model=reverse&src=abcdef")
    frame.get_by_label("Next step").click()
    expect(frame.locator(".st-key-candidates")).to_contain_text("Step 2")
    teacher, code = opened(new_page, framed_server)
    student = framed(new_page(fresh=True), outside, f"{framed_server.url}/?room={code.lower()}")
    expect(teacher.locator(BAR)).to_contain_text("1 student")
    menu_link(teacher, "Masks").click()
    expect(student.get_by_role("heading", level=1)).to_have_text("Masks")
    expect(student.locator(BAR)).to_contain_text(FOLLOWS)
