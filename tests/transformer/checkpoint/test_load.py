"""What was saved is loaded whole, of one version, equal if its files are, and not into memory that is not there."""

from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load as from_safetensors

from tests.transformer.spoiling import config_with, refused, weights_with
from transformer.checkpoint import free_memory
from transformer.checkpoint.load import assembled, load
from transformer.errors import CheckpointError
from transformer.files.untrusted_folder import FolderFiles
from transformer.runs.query import Greedy

WEIGHTS = "model.safetensors"


def test_what_was_saved_is_loaded(checkpoint_folder, shared):
    checkpoint = load(checkpoint_folder)
    stored = from_safetensors((checkpoint_folder / WEIGHTS).read_bytes())
    state = checkpoint.model.state_dict()
    assert state.keys() == stored.keys()
    for name, tensor in state.items():
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor, stored[name].float())
    assert not any(t.is_meta for t in (*checkpoint.model.parameters(), *checkpoint.model.buffers()))
    assert (checkpoint.name, checkpoint.warnings, checkpoint.card.title) == ("tiny", (), "Tiny")
    assert checkpoint.card.parameters == checkpoint.config.count_parameters()
    assert checkpoint.src_tokenizer is not checkpoint.tgt_tokenizer
    assert shared.src_tokenizer is shared.tgt_tokenizer
    assert not any((checkpoint.model.training, *(p.requires_grad for p in checkpoint.model.parameters())))
    trace = checkpoint.run("ba lo mi")
    assert trace.query.checkpoint == checkpoint.content_hash
    assert trace == checkpoint.run(checkpoint.query("ba lo mi", decoding=Greedy()))


def test_every_file_but_the_card_is_part_of_the_hash(checkpoint_folder, spoil):
    first, again = load(checkpoint_folder), load(spoil("card.json", b'{"title": "Other"}'))
    assert (first, hash(first)) == (again, hash(again))
    hashes = {first.content_hash}
    for name, change in {
        WEIGHTS: weights_with(lambda state: state["src_table"].add_(0.25)),
        "config.json": lambda old: old + b"\n",
        "source.model": lambda old: old + b"\x1a\x00",  # an empty message more
        "target.model": lambda old: old + b"\x1a\x00",
    }.items():
        hashes.add(load(spoil(name, change)).content_hash)
    assert len(hashes) == 5


def test_what_is_odd_is_loaded_with_a_warning(spoil):
    def poison(state):
        state["encoder.final_norm.bias"][3] = float("nan")
        state["src_table"][1, :2] = float("inf")

    for content, said in ((b"{", "card.json was ignored"), (b" " * 2_000_000, "the limit is 200,000")):
        assert said in load(spoil("card.json", content)).warnings[0]
    assert load(spoil("card.json")).warnings == ()  # it is not needed
    checkpoint = load(spoil(WEIGHTS, weights_with(poison)))
    (warning,) = (w for w in checkpoint.warnings if "finite" in w)
    assert "'encoder.final_norm.bias' (1 of 16)" in warning
    assert "'src_table' (2 of" in warning


def test_a_config_that_is_not_the_files_is_reported(spoil):
    checkpoint = load(spoil("config.json", config_with(eos_id=6)))
    piece = checkpoint.tgt_tokenizer.piece(6)
    differs, _, of_target = checkpoint.warnings
    assert differs == "config.json is not the file that card.json describes (its SHA-256 differs)."
    assert of_target == f"config.json says eos_id = 6, but in target.model that id belongs to the token {piece!r}."


@pytest.mark.parametrize("times", [1, 99])
def test_a_file_that_is_replaced_between_two_reads(checkpoint_folder, spoil, monkeypatch, times):
    """Read again if it happens once; refused if it does not end. Never a mix."""
    folder, read, left = spoil(), FolderFiles.read, [times]

    def read_and_replace(files, name, *, limit):
        content = read(files, name, limit=limit)
        if name == "target.model" and left[0]:
            left[0] -= 1
            spoil("config.json", config_with(norm_eps=1e-4 + left[0] * 1e-6))
        return content

    monkeypatch.setattr(FolderFiles, "read", read_and_replace)
    if times == 1:
        assert load(folder).config.norm_eps == 1e-4
    else:
        refused(folder, "its files are being replaced; try again")


def in_memory(tensors):
    """Values that are in memory already."""

    def write(places):
        for name, tensor in tensors.items():
            places[name].copy_(tensor)
            yield name

    return SimpleNamespace(shapes={name: tuple(one.shape) for name, one in tensors.items()}, narrow={}, write=write)


def test_tensors_without_a_folder_are_the_same_checkpoint_and_are_checked_alike(
    checkpoint_folder, checkpoint, tmp_path
):
    stored = {name: tensor.float() for name, tensor in checkpoint.model.state_dict().items()}
    vocabularies = tuple((checkpoint_folder / name).read_bytes() for name in ("source.model", "target.model"))

    def of_tensors(tensors, source=tmp_path / "theirs.pt"):
        return assembled(checkpoint.config, in_memory(tensors), vocabularies, source=source, card={"title": "New"})

    found, name = of_tensors(stored), "decoder.layers.0.ffn.up_proj.bias"
    assert (found.name, found.card.title, found.warnings) == ("theirs.pt", "New", ())
    assert found.run("reads this").output_text == checkpoint.run("reads this").output_text
    assert found == of_tensors(stored, tmp_path / "others.pt") != of_tensors(stored | {name: stored[name] + 1})
    with pytest.raises(CheckpointError, match=r"1 tensor has a different shape .* \(found \[3\], expected"):
        of_tensors(stored | {name: torch.ones(3)})
    del stored[name]
    with pytest.raises(CheckpointError, match=f"1 tensor is missing: '{name}'"):
        of_tensors(stored)


def test_one_that_fits_is_loaded_and_so_is_one_where_nothing_is_known(spoil, monkeypatch):
    folder = spoil()
    for there in (100_000_000, None):
        monkeypatch.setattr(free_memory, "available", lambda there=there: there)
        assert load(folder).warnings == ()


@pytest.mark.parametrize(
    ("most", "expected"),
    [("6000000\n", 3_500_000), ("max\n", 8_192_000), (None, 8_192_000), ("9999999999\n", 8_192_000)],
)
def test_the_smaller_of_machine_and_group_counts(tmp_path, monkeypatch, most, expected):
    (tmp_path / "meminfo").write_text("MemTotal: 16000 kB\nMemAvailable:    8000 kB\n", encoding="ascii")
    (tmp_path / "memory.current").write_text("3000000\n", encoding="ascii")
    (tmp_path / "memory.stat").write_text("anon 7\ninactive_file 500000\n", encoding="ascii")
    if most is not None:
        (tmp_path / "memory.max").write_text(most, encoding="ascii")
    monkeypatch.setattr(free_memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(free_memory, "_GROUP", tmp_path)
    assert free_memory.available() == expected
    monkeypatch.setattr(free_memory, "_MEMINFO", tmp_path / "none")
    (tmp_path / "memory.current").unlink()
    assert free_memory.available() is None  # a system that does not say
