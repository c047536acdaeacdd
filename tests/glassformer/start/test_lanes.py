"""The blocks of the start page: a model's own, each leading to a view that there is."""

from pathlib import Path

import pytest

from glassformer.start.diagram import lanes
from glassformer.state.view import all_fields
from tests.transformer.one_stack import ALONE
from tests.transformer.tiny import tiny_config
from transformer.model.anatomy import anatomy

PAGES = Path(__file__).parents[3] / "pages" / "explore"
BOTH: dict = {}


def lanes_of(changes):
    parts = anatomy(tiny_config(**changes, shared_vocab=True, tgt_vocab_size=17))
    return parts, lanes(parts)


@pytest.mark.parametrize("changes", [BOTH, *ALONE.values()], ids=["both", *ALONE])
def test_a_model_has_a_lane_for_each_stack_with_each_sub_layer_each_leading_to_a_view_that_there_is(changes):
    parts, drawn = lanes_of(changes)
    assert [lane.stack for lane in drawn] == list(parts.stacks)
    for lane in drawn:
        repeated = [block.name for block in lane.blocks if block.repeated and block.name != "mask"]
        assert repeated == list(lane.stack.sublayers)
        assert [block.name for block in lane.blocks][:2] == ["embedding", "positions"]
        assert (lane.blocks[-1].name == "output") == (lane.stack.name == "decoder")
        for block in lane.blocks:
            assert (PAGES / f"{block.page}.py").is_file()
            assert set(block.fields) <= {*all_fields()}
    names = [(lane.stack.name, block.name) for lane in drawn for block in lane.blocks]
    assert len(set(names)) == len(names)
    kinds = [block.fields["kind"] for lane in drawn for block in lane.blocks if "kind" in block.fields]
    assert kinds == list(parts.kinds)
