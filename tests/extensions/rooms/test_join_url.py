"""A class comes into a room by an address that reaches the server, and by a QR code that a phone reads."""

import html
import re
from types import SimpleNamespace
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
import zxingcpp

from glassformer.extensions.rooms import room_view
from glassformer.state import global_params

ADDRESSES = (
    "https://glass.example/?room=K7MPR4",
    "http://192.168.178.23:8501/?room=ACDEFG",
    "https://school.example/a/rather/long/path/of/a/proxy/with-many-parts/glassformer/?room=WXY347",
)


def drawn(picture):
    """The pixels of a QR code as its SVG draws them: each `M`, `m`, `h` of its path is a run of modules in a row."""
    svg = unquote(html.unescape(re.search(r'src="data:image/svg[^,]*,([^"]+)"', picture)[1]))
    size = int(re.search(r"<path fill='#fff' d='M0 0h(\d+)v\1h-\1z'/>", svg)[1])  # the ground, whatever the theme is
    modules, x, y = np.zeros((size, size), dtype=bool), 0.0, 0.0
    path = re.search(r"stroke='#000' d='([^']+)'", svg)[1]
    for kind, first, second in re.findall(r"([Mmh])(-?[\d.]+)(?: (-?[\d.]+))?", path):
        if kind == "h":
            modules[int(y), int(x) : int(x + float(first))] = True
            x += float(first)
        else:
            x = float(first) + (x if kind == "m" else 0)
            y = float(second) + (y if kind == "m" else 0)
    return modules


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_phone_reads_the_address_which_has_a_quiet_zone_and_no_markup(address):
    modules = drawn(room_view.qr(address, where="gf-join"))
    assert np.array_equal(modules, np.pad(modules[4:-4, 4:-4], 4))
    image = np.where(np.kron(modules, np.ones((6, 6), dtype=bool)), 0, 255).astype(np.uint8)
    assert [found.text for found in zxingcpp.read_barcodes(image)] == [address]
    picture = room_view.qr(f'{address}"><script>', where='x" onload="alert(1)')
    assert "<script" not in picture
    assert ' onload="' not in picture
    assert f"QR code of {html.escape(address)}" in picture


@pytest.mark.parametrize(
    ("host", "alone"),
    [("localhost", True), ("127.0.0.1", True), ("127.8.0.1", True), ("::1", True), ("app.localhost", True),
     ("192.168.0.7", False), ("glass.example", False), ("localhost.example", False), ("", False)],
)  # fmt: skip
def test_which_hosts_a_phone_would_take_for_itself(host, alone):
    assert room_view.is_alone(host) is alone


@pytest.mark.parametrize(
    ("url", "bound", "expected"),
    [
        ("https://glass.example/app/room?x=1", "127.0.0.1", "https://glass.example/app"),  # a proxy in front
        ("http://localhost:8501/room", None, "http://10.1.2.3:8501"),  # it listens to the network, too
        ("http://localhost:8501/room", "127.0.0.1", "http://localhost:8501"),  # nobody else gets in
        ("http://[::1]:8501/room", None, "http://10.1.2.3:8501"),
    ],
)
def test_the_address_is_one_that_reaches_the_server(monkeypatch, url, bound, expected):
    monkeypatch.setattr(room_view, "own_address", lambda: "10.1.2.3")
    known = SimpleNamespace(context=SimpleNamespace(url=url), get_option=lambda name: bound)
    monkeypatch.setattr(room_view, "st", known)
    monkeypatch.setattr(global_params, "st", known)
    assert room_view.join_url("K7MPR4") == f"{expected}/?room=K7MPR4"
    assert urlsplit(room_view.join_url("K7MPR4")).query == "room=K7MPR4"
