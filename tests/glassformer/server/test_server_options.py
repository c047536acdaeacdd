"""Uploads and trainings are on where a server listens on its machine alone, unless somebody says otherwise."""

import pytest
import streamlit
import torch

from glassformer.server import server_options
from transformer.errors import CheckpointError


@pytest.fixture
def listening(monkeypatch):
    monkeypatch.delenv(server_options.ENVIRONMENT, raising=False)

    def at(address):
        monkeypatch.setattr(streamlit, "get_option", lambda name: {"server.address": address}[name])

    return at


HERE = ["127.0.0.1", "localhost", "::1", "127.1.2.3"]
ELSEWHERE = [None, "", "0.0.0.0", "192.168.0.7", "::", "example.org", "127.0.0.1.example.org"]


@pytest.mark.parametrize(
    ("address", "expected"), [*((one, "on") for one in HERE), *((one, "off") for one in ELSEWHERE)]
)
def test_uploads_are_on_where_the_server_listens_on_this_machine_alone(listening, address, expected):
    listening(address)
    assert server_options.mode([]) == expected
    assert server_options.mode(["--uploads=no-pickles"]) == "no-pickles"


def test_the_command_line_comes_before_the_environment_and_another_word_is_off(listening, monkeypatch):
    listening("127.0.0.1")
    assert server_options.mode(["--uploads", "yes"]) == "off"
    monkeypatch.setenv(server_options.ENVIRONMENT, "no-pickles")
    assert server_options.mode([]) == "no-pickles"
    assert server_options.mode(["--checkpoints", "x", "--uploads", "off"]) == "off"
    monkeypatch.setattr(server_options, "can_limit", lambda: False)  # a system without limits takes nothing
    assert server_options.mode(["--uploads", "on"]) == "off"


def test_models_compute_on_the_processor_unless_it_is_said(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.delenv(server_options.DEVICE[0], raising=False)
    assert server_options.device([]).type == "cpu"
    assert str(server_options.device(["--device", "cuda:1"])) == "cuda:1"
    monkeypatch.setenv(server_options.DEVICE[0], "cuda")
    assert server_options.device([]).type == "cuda"
    assert server_options.device(["--device=cpu"]).type == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(CheckpointError, match="no CUDA device here"):
        server_options.device([])


def test_training_is_on_where_uploads_are_unless_it_is_said(listening, monkeypatch):
    monkeypatch.delenv(server_options.TRAINING[0], raising=False)
    listening("127.0.0.1")
    told = [], ["--uploads", "off"], ["--uploads=off", "--training", "on"], ["--training=perhaps"], ["--training=on"]
    assert [server_options.trains(words) for words in told] == [True, False, True, False, True]
    monkeypatch.setenv(server_options.TRAINING[0], "off")
    assert [server_options.trains(words) for words in ([], ["--training=on"])] == [False, True]
    listening("0.0.0.0")
    monkeypatch.delenv(server_options.TRAINING[0])
    assert [server_options.trains(words) for words in ([], ["--training=on"])] == [False, True]
    monkeypatch.setattr(server_options, "can_limit", lambda: False)
    assert not server_options.trains(["--training=on"])
