"""`doctor` ends with 0, 1, 2 or 3 for healthy, broken, not examined and not tested, and prints what it found."""

import json
from pathlib import Path

import pytest
import torch

from transformer.__main__ import main

from tests.transformer.spoiling import weights_with  # isort: skip


REVERSE = str(Path(__file__).parents[3] / "checkpoints" / "reverse")


def test_a_healthy_checkpoint_ends_with_0(few_tests, capsys):
    assert main(["doctor", REVERSE]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("reverse is healthy: 5 tests found nothing wrong.")
    assert printed.err == ""  # progress is for terminals


def test_what_was_not_tested_ends_with_3(few_tests, tmp_path, capsys):
    texts = tmp_path / "texts.txt"
    texts.write_text("planet\nwindow\nharbour\n")
    assert main(["doctor", REVERSE, "--pairs", str(texts)]) == 3
    said = "reverse: no fault was found in its numbers; its wiring and its task were not tested: that needs pairs."
    assert " ".join(capsys.readouterr().out.split()).startswith(said)


def test_json_of_given_pairs(few_tests, tmp_path, capsys):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"{word}\t{word[::-1]}\n" for word in ("planet", "window", "harbour", "silver")))
    assert main(["doctor", REVERSE, "--pairs", str(pairs), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["sentences"] == {"origin": "given", "n": 4}
    assert [one["test"] for one in found["findings"]] == ["wiring", "finite", "constant", "positions", "loss"]


def test_what_is_broken_ends_with_1(few_tests, spoil, capsys):
    def damage(state):
        state["decoder.layers.0.ffn.down_proj.weight"][0, 0] = torch.nan

    folder = spoil("model.safetensors", weights_with(damage))
    assert main(["doctor", str(folder), "--markdown"]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("## Doctor: spoilt is broken: 1 test failed.")
    assert "`decoder.layers.0.ffn.down_proj.weight`" in printed


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--pairs", "nowhere.tsv"], "nowhere.tsv: cannot be read"),
        (["--set", "n_heads=4"], "so there are no questions"),
        (["--set", "n_heads"], "expected FIELD=VALUE"),
        (["--device", "cuda"], "torch finds no CUDA device here"),
    ],
)
def test_what_cannot_be_examined_ends_with_2(more, says, few_tests, capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(["doctor", REVERSE, *more]) == 2
    assert says in capsys.readouterr().err
