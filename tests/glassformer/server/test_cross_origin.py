"""Who may frame, reach, upload and train is what the operator says, or the server's address where he does not."""

import socket
import urllib.request
from contextlib import suppress

import pytest
import streamlit
import torch
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from benchmarks.raw_client import PROTOCOL, stream_address
from glassformer.server import server_options
from glassformer.server.server_options import (
    ALLOWED_HOSTS,
    FRAME_ANCESTORS,
    allowed_hosts,
    frame_ancestors,
    mode,
    trains,
)
from tests.afresh import run_afresh
from tools.serve import serve
from transformer.errors import CheckpointError, DataError

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
NO_HOSTS = ("https://a.example", "*a.example", "a.example:8501", "*.", "a.*.example", "a/b", "-a.example", "a_b")


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


STARTS = f"""
import os
os.environ["{FRAME_ANCESTORS[0]}"] = "moodle.example.org"
try:
    import app
except SystemExit as ended:
    print(ended)
"""


def test_a_server_does_not_start_with_a_source_that_is_none():
    told = run_afresh(STARTS).stdout
    assert told.startswith("GLASSFORMER_FRAME_ANCESTORS / --frame-ancestors: 'moodle.example.org' cannot be used")
    assert told.count("\n") == 1


@pytest.fixture
def listening(monkeypatch):
    for setting in (server_options.ENVIRONMENT, server_options.TRAINING[0], server_options.DEVICE[0]):
        monkeypatch.delenv(setting, raising=False)

    def at(address):
        monkeypatch.setattr(streamlit, "get_option", lambda name: {"server.address": address}[name])

    return at


def test_uploads_are_on_where_the_server_listens_on_this_machine_alone_or_it_is_said(listening, monkeypatch):
    for address in (None, "", "0.0.0.0", "192.168.0.7", "::", "example.org", "127.0.0.1.example.org"):
        listening(address)
        assert (mode([]), mode(["--uploads=no-pickles"])) == ("off", "no-pickles"), address
    for address in ("localhost", "::1", "127.1.2.3", "127.0.0.1"):
        listening(address)
        assert mode([]) == "on", address
    assert mode(["--uploads", "yes"]) == "off"
    monkeypatch.setenv(server_options.ENVIRONMENT, "no-pickles")
    assert (mode([]), mode(["--checkpoints", "x", "--uploads", "off"])) == ("no-pickles", "off")
    monkeypatch.setattr(server_options, "can_limit", lambda: False)  # a system without limits takes nothing
    assert mode(["--uploads", "on"]) == "off"


def test_models_compute_on_the_processor_unless_it_is_said(listening, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert [str(server_options.device(words)) for words in ([], ["--device", "cuda:1"])] == ["cpu", "cuda:1"]
    monkeypatch.setenv(server_options.DEVICE[0], "cuda")
    assert [server_options.device(words).type for words in ([], ["--device=cpu"])] == ["cuda", "cpu"]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(CheckpointError, match="no CUDA device here"):
        server_options.device([])


def test_training_is_on_where_uploads_are_unless_it_is_said(listening, monkeypatch):
    listening("127.0.0.1")
    told = [], ["--uploads", "off"], ["--uploads=off", "--training", "on"], ["--training=perhaps"], ["--training=on"]
    assert [trains(words) for words in told] == [True, False, True, False, True]
    monkeypatch.setenv(server_options.TRAINING[0], "off")
    assert [trains(words) for words in ([], ["--training=on"])] == [False, True]
    listening("0.0.0.0")
    monkeypatch.delenv(server_options.TRAINING[0])
    assert [trains(words) for words in ([], ["--training=on"])] == [False, True]
    monkeypatch.setattr(server_options, "can_limit", lambda: False)
    assert not trains(["--training=on"])
