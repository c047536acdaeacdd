"""A model without a tokenizer is in memory in 16 bits where 32 do not fit, and says how far loading is."""

import torch

from glassformer.extensions.tokenizers.options import Options
from glassformer.extensions.tokenizers.tokenizer_families import Vocabularies
from tests.extensions.refusing import refusal
from tests.transformer.runs.test_teacher_forcing import refused
from tests.transformer.tiny import DECODER, tiny_config, tiny_model
from transformer import score
from transformer.checkpoint import free_memory
from transformer.checkpoint.load import load
from transformer.checkpoint.save import CheckpointContents, save


def raw(folder, dtype=torch.float32, **changes):
    """A folder of a random decoder whose text is ids."""
    sizes = {**DECODER, "unk_id": None, "normalisation": (), **changes}
    model = tiny_model(dtype=torch.float32, **sizes)
    pieces = Vocabularies("raw", Options(size=model.config.src_vocab_size), {})
    save(CheckpointContents(tiny_config(**sizes), model.state_dict(), pieces, {}), folder, dtype=dtype)
    return folder


def room_for(monkeypatch, n_bytes):
    monkeypatch.setattr(free_memory, "available", lambda: n_bytes)


def test_matrices_stay_in_16_bits_where_32_do_not_fit(tmp_path, monkeypatch):
    dtype = torch.bfloat16
    folder = raw(tmp_path / "m", dtype, tie_output=False, gated=True)
    usual = load(folder)
    assert not any("16 bits" in warning for warning in usual.warnings)
    room_for(monkeypatch, 4 * usual.config.count_parameters())
    found = load(folder)
    assert found == usual
    (warning,) = set(found.warnings) - set(usual.warnings)
    assert f"{4 * usual.config.count_parameters():,} bytes" in warning
    kinds = {name: parameter.dtype for name, parameter in found.model.named_parameters()}
    assert {kinds[name] for name in kinds if name.endswith(("proj.weight", "src_table", "output_table"))} == {dtype}
    assert {kinds[name] for name in kinds if "norm" in name or "bias" in name} == {torch.float32}
    for ids in (torch.tensor([[5, 6, 7]]), torch.tensor([[5]])):
        assert torch.allclose(found.model(ids, ids), usual.model(ids, ids), rtol=0, atol=1e-5)
    assert found.run("5 6 7").tgt_ids == usual.run("5 6 7").tgt_ids


def test_what_fits_in_no_way_is_refused_before_it_is_read_and_32_bits_never_become_16(tmp_path, monkeypatch):
    narrow, wide = raw(tmp_path / "m", torch.float16), raw(tmp_path / "n")
    room_for(monkeypatch, 4 * load(wide).config.count_parameters())
    refusal(lambda: load(wide), "are free")
    monkeypatch.setattr("transformer.files.tensorfile.read_into", None)
    room_for(monkeypatch, 1_000)
    refusal(lambda: load(narrow), r"model.safetensors: loading it needs [\d,]+ bytes .* 1,000 are free")


def test_progress_goes_from_nothing_to_all_of_it(tmp_path):
    folder, seen = raw(tmp_path / "m"), []
    checkpoint = load(folder, progress=lambda done, whole: seen.append((done, whole)))
    whole = 4 * checkpoint.config.count_parameters()
    assert (seen[0], seen[-1]) == ((0, whole), (whole, whole))
    assert seen == sorted(set(seen))
    assert len(seen) == 1 + len(list(checkpoint.model.parameters()))


def test_a_model_without_a_tokenizer_takes_numbers_as_references(tmp_path):
    numbers = load(raw(tmp_path / "m"))
    assert score(numbers, "5 6", "7 8 9").ids == (7, 8, 9)
    assert "but the reference contains '17'" in refused(numbers, "5 6", "7 17")
