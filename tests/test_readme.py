"""The README's Python runs as it stands, and its commands exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from transformer.__main__ import main

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_the_python_examples_run_one_after_another(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    namespace: dict[str, object] = {}
    for code in blocks("python"):
        exec(compile(code, "README.md", "exec"), namespace)
    printed = capsys.readouterr().out
    trace, recorder, logits = namespace["trace"], namespace["recorder"], namespace["logits"]
    assert trace.output_text in printed
    assert namespace["figure"].data[0].type == "heatmap"
    assert len(recorder.values) == namespace["checkpoint"].config.n_decoder_layers
    assert logits.shape == (1, trace.n_steps, len(trace.vocabulary))


def test_every_option_of_the_training_example_exists(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["train", "--help"])
    known = set(re.findall(r"--[a-z0-9-]+", capsys.readouterr().out))
    [example] = [block for block in blocks("sh") if "transformer train" in block]
    used = set(re.findall(r"--[a-z0-9-]+", example.split("transformer train", 1)[1]))
    assert used <= known


def test_every_file_that_is_linked_exists():
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target
