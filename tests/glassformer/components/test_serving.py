import asyncio
import gzip

import pytest

from glassformer.components import assets
from glassformer.components.serving import Scripts

SCRIPT = assets.script_file()


def answer(static, name, *, method="GET", base="", **headers):
    """What a client gets: headers and body, or None where the app behind is asked."""
    sent = []

    async def behind(scope, receive, send):
        sent.append(None)

    async def send(message):
        sent.append(message)

    given = {"accept-encoding": "gzip, br", **headers}
    raw = [(key.replace("_", "-").encode(), value.encode()) for key, value in given.items()]
    scope = {"type": "http", "method": method, "path": f"{base}/app/static/{name}", "headers": raw}
    asyncio.run(Scripts(behind, static)(scope, None, send))
    return None if sent == [None] else (dict(sent[0]["headers"]), sent[1]["body"])


@pytest.fixture(scope="module")
def static(tmp_path_factory):
    folder = tmp_path_factory.mktemp("static")
    assets.ensure_static(folder)
    return folder


@pytest.mark.parametrize("base", ["", "/below"])
@pytest.mark.parametrize("name", [SCRIPT, assets.PLOTLY_FILE])
def test_a_script_is_served_packed_and_to_be_kept(static, name, base):
    headers, body = answer(static, name, base=base)
    assert gzip.decompress(body) == (static / name).read_bytes()
    assert headers[b"content-length"] == str(len(body)).encode()
    assert headers[b"content-type"].startswith(b"text/javascript")
    assert b"immutable" in headers[b"cache-control"]


@pytest.mark.parametrize(
    ("name", "options"),
    [("icon.svg", {}), (f"{SCRIPT}/../icon.svg", {}), (f"old{SCRIPT}", {}),
     (SCRIPT, {"method": "POST"}), (SCRIPT, {"range": "bytes=0-9"}), (SCRIPT, {"accept-encoding": "identity"})],
)  # fmt: skip
def test_all_else_is_left_to_the_app(static, name, options):
    assert answer(static, name, **options) is None


def test_a_file_that_is_not_there_is_left_to_the_app(tmp_path):
    assert answer(tmp_path, SCRIPT) is None


def test_sockets_are_left_to_the_app():
    asked = []

    async def behind(scope, receive, send):
        asked.append(scope["type"])

    asyncio.run(Scripts(behind)({"type": "websocket", "path": "/_stcore/stream"}, None, None))
    assert asked == ["websocket"]
