"""What stands in for a part that a small model lacks is listed in the report, drawn as such, and not counted."""

import json

import pytest
import torch

from glassformer.extensions.importers.library.opening import preview
from glassformer.inside.model.blocks import blocks_of, each_layer, sized, stacks
from tests.extensions.importers.library.tutorial_models import Block, Blocks, Least, at_random, saved
from tests.transformer.tiny import DECODER, tiny_model
from transformer.analysis.costs import holdings, stand_ins
from transformer.checkpoint import load as native
from transformer.checkpoint.opening import load
from transformer.checkpoint.save import save

LAYER = "encoder.layers.0."
CASES = {
    Least: ({LAYER + "self_attn.out_proj.weight", LAYER + "ffn.down_proj.weight", LAYER + "ffn.down_proj.bias"},
            {"residual": False, "scale_embedding": False, "pad_id": 0}),
    Block: ({"src_table"}, {"n_heads": 4, "norm": "post", "activation": "relu", "pad_id": 0}),
    Blocks: (set(), {"n_heads": 4, "norm": "post", "activation": "relu", "scale_embedding": False, "pad_id": 0}),
}  # fmt: skip


@pytest.mark.parametrize("make", CASES)
def test_it_is_listed_drawn_not_counted_and_known_again_from_a_folder(make, tmp_path):
    (names, answers), theirs = CASES[make], at_random(make())
    path = saved(tmp_path / "m.pt", theirs.state_dict())
    imported, learned = preview(path, answers=answers), sum(one.numel() for one in theirs.parameters())
    report = str(imported.report)
    assert imported.report.filled.keys() == names
    assert ("stand-ins:" in report) == bool(names)
    assert not any(name in one.targets for one in imported.report.file_tensors for name in names)
    assert report.startswith(f"{path}: An encoder whose tensors")
    save(imported.parts, tmp_path / "ours")
    assert json.loads((tmp_path / "ours" / "card.json").read_text())["parameters"] == learned
    for checkpoint in (load(path, answers=answers), native.load(tmp_path / "ours")):
        assert stand_ins(checkpoint.model) == names
        assert sum(one.parameters for one in holdings(checkpoint.model).values()) == learned
        assert checkpoint.warnings == ()  # of the end mark that it does not need
        assert checkpoint.card.description.startswith("An encoder whose tensors")
    one = sized(checkpoint.model, n_source=3, n_target=3)
    drawn = {block.place: block for stack in stacks(one, grouping=each_layer) for block in blocks_of(stack)}
    marked = {place for place, block in drawn.items() if "not counted" in block.role}
    places = {"src_table": "encoder.embedding"}
    assert marked == {places.get(name, ".".join(name.split(".")[:4]).replace(".layers", "")) for name in names}
    assert all(drawn[place].text.endswith(" *") for place in marked)
    assert sum(block.parameters or 0 for block in drawn.values()) == learned


def test_a_model_that_has_all_its_parts_has_no_stand_ins():
    model = tiny_model(**DECODER)
    assert stand_ins(model) == frozenset()
    with torch.no_grad():
        weight = model.decoder.layers[0].ffn.down_proj.weight
        weight.copy_(torch.eye(*weight.shape))
    assert stand_ins(model) == frozenset()
