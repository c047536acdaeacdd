"""Who may frame the app and by which names it is reached follow the operator's settings, over HTTP as well."""

import socket
import urllib.request
from contextlib import suppress

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from benchmarks.raw_client import PROTOCOL, stream_address
from glassformer.server.cross_origin import ALLOWED_HOSTS, FRAME_ANCESTORS, allowed_hosts, frame_ancestors
from tools.serve import ServerFailedError, serve
from transformer.errors import DataError

SELF = "'self'"
SOURCES = {
    "": SELF,
    "https://huggingface.co  https://Moodle.Example.org:8443": f"{SELF} https://huggingface.co "
    "https://moodle.example.org:8443",
    "https://*.example.org,http://localhost:*": f"{SELF} https://*.example.org http://localhost:*",
    "https: 'self' https:": f"{SELF} https:",
    "*": f"{SELF} *",
}
NO_SOURCES = (
    "moodle.example.org", "https://moodle.example.org/", "https://a.example; script-src *", "https://*", "ftp://a.example",
    "'none'", "data:", "https://a.example:port", "https://ä.example", "https://a.example\x00",
)  # fmt: skip
NO_HOSTS = ("https://a.example", "a.example:8501", "*.", "a.*.example", "a/b", "-a.example", "a_b")


@pytest.fixture(autouse=True)
def _unset(monkeypatch):
    for environment, _ in (FRAME_ANCESTORS, ALLOWED_HOSTS):
        monkeypatch.delenv(environment, raising=False)


def test_the_apps_own_pages_and_sources_that_are_named_may_frame_it_and_hosts_have_names(monkeypatch):
    for said, sources in SOURCES.items():
        assert frame_ancestors([f"--frame-ancestors={said}"]) == frame_ancestors(["--frame-ancestors", said]) == sources
        monkeypatch.setenv(FRAME_ANCESTORS[0], said)
        assert frame_ancestors([]) == sources
    assert allowed_hosts([]) == []
    said = "--allowed-hosts=*.hf.space, Glass.School.example 192.168.1.20"
    assert allowed_hosts([said]) == ["*.hf.space", "glass.school.example", "192.168.1.20"]
    assert allowed_hosts(["--allowed-hosts", "*"]) == ["*"]


@pytest.mark.parametrize(
    ("read", "option", "said"),
    [(frame_ancestors, FRAME_ANCESTORS, one) for one in NO_SOURCES]
    + [(allowed_hosts, ALLOWED_HOSTS, one) for one in NO_HOSTS],
)
def test_anything_else_is_refused_by_its_name_with_what_to_write(read, option, said):
    with pytest.raises(DataError) as refused:
        read([f"{option[1]}=https://good.example {said}" if read is frame_ancestors else f"{option[1]}={said}"])
    told = str(refused.value)
    assert told.startswith(f"{' / '.join(option)}: ")
    assert "cannot be used; write values such as" in told
    examples = told.partition("such as ")[2].rstrip(".")
    assert read([f"{option[1]}={examples}"])  # the remedy is one


def opens(server, host):
    """Whether a WebSocket opens that a browser would ask for under this name."""
    address, origin = stream_address(server.url).replace("127.0.0.1", host), f"http://{host}:{server.port}"
    with (
        suppress(InvalidStatus),
        socket.create_connection(("127.0.0.1", server.port)) as there,
        connect(address, sock=there, subprotocols=[PROTOCOL], origin=origin),
    ):
        return True
    return False


def test_a_server_sends_the_header_and_takes_the_hosts_that_were_named(tmp_path):
    environment = {ALLOWED_HOSTS[0]: "*.hf.space glass.example"}
    arguments = ["--frame-ancestors", "https://huggingface.co"]
    with serve(log=tmp_path / "log", arguments=arguments, environment=environment) as server:
        for path in ("", "_stcore/health"):
            with urllib.request.urlopen(f"{server.url}/{path}") as answer:
                policy = answer.headers["Content-Security-Policy"]
            assert policy == f"frame-ancestors {SELF} https://huggingface.co"
        hosts = ("127.0.0.1", "localhost", "a-b.hf.space", "glass.example", "hf.space.example", "other.example")
        assert [opens(server, host) for host in hosts] == [True] * 4 + [False] * 2


def test_a_server_does_not_start_with_a_source_that_is_none(tmp_path):
    with (
        pytest.raises(ServerFailedError) as ended,
        serve(log=tmp_path / "log", environment={FRAME_ANCESTORS[0]: "moodle.example.org"}),
    ):
        pass
    assert "GLASSFORMER_FRAME_ANCESTORS / --frame-ancestors: 'moodle.example.org' cannot be used" in str(ended.value)
    assert "Traceback" not in str(ended.value)
