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
    assert "ssalg → salgg" in printed
    assert logits.shape == (1, trace.n_steps, len(trace.vocabulary))


@pytest.mark.parametrize(
    "command", ["task", "train", "prepare", "evaluate", "sentences", "translate", "import", "doctor"]
)
def test_every_option_of_the_commands_exists(command, capsys):
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    known = set(re.findall(r"--[a-z0-9-]+", capsys.readouterr().out))
    lines = [line for block in blocks("sh") for line in block.replace("\\\n", " ").splitlines()]
    examples = [line for line in lines if f"transformer {command} " in line]
    assert examples or command == "translate"
    for line in examples:
        assert set(re.findall(r"--[a-z0-9-]+", line)) <= known, line


def test_every_file_that_is_linked_exists():
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target
