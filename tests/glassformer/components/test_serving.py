"""Our scripts are served packed and to be kept, and everything else is left to the app."""

import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from glassformer.components import custom_component
from glassformer.components.custom_component import StaticScriptsMiddleware

SCRIPT = custom_component.script_file()


def answer(name, *, method="GET", base="", accepts="gzip, br", **headers):
    """What a client gets, where the app behind says that it was asked."""
    client = TestClient(StaticScriptsMiddleware(PlainTextResponse("behind")))
    return client.request(method, f"{base}/app/static/{name}", headers={"accept-encoding": accepts, **headers})


@pytest.mark.parametrize("base", ["", "/below"])
@pytest.mark.parametrize("name", [SCRIPT, custom_component.PLOTLY_FILE])
def test_a_script_is_served_packed_and_to_be_kept(name, base):
    found = answer(name, base=base)
    assert found.content == custom_component.served()[name]
    assert found.headers["content-type"].startswith("text/javascript")
    assert "immutable" in found.headers["cache-control"]
    assert found.headers["content-encoding"] == "gzip"
    assert int(found.headers["content-length"]) < len(found.content)


def test_who_cannot_unpack_gets_it_as_it_is_a_part_is_the_whole_and_a_head_has_no_body():
    for accepts in ("identity", "br"):
        found = answer(SCRIPT, accepts=accepts)
        assert (found.text, "content-encoding" in found.headers) == (custom_component.script(), False)
    assert answer(SCRIPT, range="bytes=0-9").text == custom_component.script()
    head = answer(SCRIPT, method="HEAD", accepts="identity")
    assert (head.content, int(head.headers["content-length"])) == (b"", len(custom_component.script().encode()))


@pytest.mark.parametrize(("name", "method"), [("icon.svg", "GET"), (f"old{SCRIPT}", "GET"), (SCRIPT, "POST")])
def test_all_else_is_left_to_the_app(name, method):
    assert answer(name, method=method).text == "behind"
