"""`python -m transformer import` makes a folder that runs of a model, or says why not and writes nothing."""

import re
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel

import transformer
from glassformer.extensions.importers.library.kept_answers import as_said
from tests.extensions.huggingface.parity import change_config, saved, tiny
from tests.extensions.importers.library.tutorial_models import as_a_tutorial
from tests.extensions.weight_files.conftest import opened_here  # noqa: F401  it is a fixture
from tests.test_docs import ROOT, blocks
from transformer.__main__ import main
from transformer.checkpoint import free_memory
from transformer.checkpoint.load import load
from transformer.errors import CheckpointError

REVERSE = ROOT / "checkpoints" / "reverse"
OPENING = ROOT / "docs" / "opening.md"
GPT2 = {"vocab_size": 61, "n_embd": 24, "n_layer": 2, "n_head": 4, "n_positions": 48}


@pytest.fixture
def folder(tmp_path):
    """A tiny GPT-2 without a tokenizer, as transformers saves it."""
    model = tiny(GPT2LMHeadModel, GPT2Config(**GPT2, bos_token_id=3, eos_token_id=3))
    return saved(model, tmp_path / "theirs", bos_token_id=3, eos_token_id=3)


def test_a_folder_becomes_a_checkpoint_that_runs(folder, tmp_path, capsys):
    out = tmp_path / "ours"
    assert main(["import", str(folder), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "All tensors and fields are accounted for" in printed
    assert "transformer.h.0–1.attn.c_attn.weight" in printed
    checkpoint = load(out)
    trace = checkpoint.run(checkpoint.query("12 7 5", max_new=6))
    theirs = GPT2LMHeadModel.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    ids = theirs.generate(torch.tensor([trace.src_ids]), max_new_tokens=6, do_sample=False, num_beams=1, pad_token_id=0)
    assert list(trace.tgt_ids) == ids[0, len(trace.src_ids) :].tolist()
    at_once = transformer.load(folder)  # without a folder of ours between
    assert at_once.run(at_once.query("12 7 5", max_new=6)).tgt_ids == trace.tgt_ids
    with pytest.raises(CheckpointError, match=r"uses its own tokenizer\. Remove the tokenizer that you gave"):
        transformer.preview(folder, given=transformer.Given(pieces=REVERSE / "pieces.model"))


def test_16_bits_stay_16_bits_on_the_disk_and_where_memory_is_short(folder, tmp_path, monkeypatch):
    path = folder / "model.safetensors"
    save_file({name: tensor.bfloat16() for name, tensor in load_file(path).items()}, path)
    assert main(["import", str(folder), "--out", str(tmp_path / "ours")]) == 0
    state, ours = load_file(tmp_path / "ours" / "model.safetensors"), load(tmp_path / "ours")
    assert {tensor.dtype for tensor in state.values()} == {torch.bfloat16}
    assert all(torch.equal(state[name].float(), value) for name, value in ours.model.state_dict().items())
    whole = 4 * ours.config.count_parameters()
    monkeypatch.setattr(free_memory, "available", lambda: whole)
    narrow = transformer.load(folder)
    assert f"this model needs {whole:,} bytes" in " ".join(narrow.warnings)
    assert narrow.model.src_table.dtype == torch.bfloat16
    assert narrow.run("12 7 5").tgt_ids == ours.run("12 7 5").tgt_ids


WORDS = ["glass", "kitten", "abcdef", "umbrella", "noon", "aabbcc", "zx", "hello", "monday", "quietly", "transform",
         "lamp", "books"]  # fmt: skip


def as_arguments(answers):
    return [part for name, value in answers.items() for part in ("--set", f"{name}={as_said(value)}")]


@pytest.fixture(scope="module")
def reverse(tmp_path_factory):
    """The shipped model as a tutorial's reader would have saved it, and pairs that it was trained for."""
    place = tmp_path_factory.mktemp("reverse")
    torch.save({"model_state_dict": as_a_tutorial(load(REVERSE).model), "epoch": 12}, place / "reverse.pt")
    (place / "pairs.tsv").write_text("".join(f"{word}\t{word[::-1]}\n" for word in WORDS))
    return place


def test_a_tutorials_file_is_asked_about_scored_answered_and_runs(reverse, tmp_path, capsys):
    out, pieces, file = tmp_path / "ours", REVERSE / "pieces.model", reverse / "reverse.pt"
    command = ["import", str(file), "--out", str(out), "--pieces", str(pieces)]
    with_pairs = [*command, "--pairs", str(reverse / "pairs.tsv")]
    assert main(with_pairs) == 2
    printed = capsys.readouterr()
    assert "3 fields listed above need answers" in printed.err  # where others are hardly worse
    assert not out.exists()
    decided = r"  norm  pre  decided by pairs  Your pairs decide: pre fits best \(loss 0\.\d+ on 13 "
    assert re.search(decided, printed.out)
    assert "--set n_heads=4 --set activation=relu --set prepend_source_bos=false" in printed.out
    assert re.search(r"--set n_heads=\.\.\.  4 \(\d\.\d{3}\), ", printed.out)
    answers = {"n_heads": 4, "activation": "relu", "prepend_source_bos": False, "scale_embedding": True}
    assert main([*with_pairs, *as_arguments(answers)]) == 0
    assert "answers kept in " in capsys.readouterr().out
    ours, shipped = load(out), load(REVERSE)
    assert [ours.run(word).output_text for word in WORDS[:4]] == [word[::-1] for word in WORDS[:4]]
    theirs = shipped.model.state_dict()
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.model.state_dict().items())
    without = transformer.Given(pieces=pieces)
    assert transformer.load(file, given=without).config == ours.config  # without the pairs, too
    file.with_name("reverse.answers.json").unlink()
    given = transformer.Given(pieces=pieces, pairs=reverse / "pairs.tsv")
    opened = transformer.load(file, answers=answers, given=given)
    assert opened.config == ours.config
    assert opened.warnings[0].startswith("norm = pre. Your pairs decide: ")
    answers |= {"norm": "post"}  # which pairs refute, and the user says all the same
    norm = next(
        one for one in transformer.preview(file, answers=answers, given=given).report.fields if one.name == "norm"
    )
    assert (norm.how, norm.value) == ("answered", "post")


def test_the_example_of_the_docs_opens_it(reverse, tmp_path, capsys, monkeypatch):
    (example,) = (block for block in blocks("py", of=OPENING) if "runs/model.pt" in block)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "model.pt").write_bytes((reverse / "reverse.pt").read_bytes())
    (tmp_path / "runs" / "pieces.model").write_bytes((REVERSE / "pieces.model").read_bytes())
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "opening.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "n_heads (one of 8, 4, 16" in printed
    assert printed.endswith("ssalg\n")


def test_what_cannot_be_is_refused_in_a_sentence_and_nothing_is_written(reverse, folder, tmp_path, capsys):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("all of it")
    model, out = str(reverse / "reverse.pt"), str(tmp_path / "ours")
    other = tmp_path / "bloom"
    shutil.copytree(folder, other)
    change_config(other, model_type="bloom")
    for arguments, message in (
        ([model, "--pieces", str(REVERSE.with_name("en-fr") / "pieces.model")],
         "has 6,028 tokens, but the embedding table has 30 rows"),
        ([model, "--set", "pad_id=0", "--set", "pad_id=1"], "pad_id has two answers"),
        ([str(folder), "--set", "eos_id"], "expected FIELD=VALUE"),
        ([str(folder), "--set", "=3"], "expected FIELD=VALUE"),
        ([str(folder), "--set", "colour=red"], "no question named 'colour'; expected one of bos_id, decoder_start_id"),
        ([str(folder), "--out", str(mine)], "already exists and is not an empty folder"),
        ([str(other)], "model_type"),
    ):  # fmt: skip
        where = [] if "--out" in arguments else ["--out", out]
        assert main(["import", *arguments, *where]) == 2
        assert message in capsys.readouterr().err
    assert [path.name for path in mine.iterdir()] == ["thesis.txt"]
    assert not (tmp_path / "ours").exists()
