"""Uploads and trainings are on where a server listens on its machine alone, unless somebody says otherwise."""

import pytest
import streamlit
import torch

from glassformer.server import server_options
from glassformer.server.server_options import mode, trains
from transformer.errors import CheckpointError


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
