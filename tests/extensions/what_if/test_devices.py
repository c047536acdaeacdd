"""On another device changes and effects of heads are the same: see `tests/transformer/test_devices.py`."""

import pytest
import torch

from glassformer.extensions.what_if.head_effects import head_effects
from glassformer.extensions.what_if.interventions import KINDS
from tests.extensions.what_if.interventions.of_kinds import example
from tests.transformer.devices import TEXT, plain, same
from tests.transformer.devices import of_name as of_name
from tests.transformer.devices import pair as pair
from tests.transformer.featured import FEATURED
from transformer.checkpoint.load import load
from transformer.errors import QueryError
from transformer.runs.trace import Trace


@pytest.mark.parametrize("pair", ["fairseq", "windows", "filling"], indirect=True)
def test_effects_of_heads(pair):
    same(pair, lambda one: head_effects(one, one.run(one.query(TEXT, max_new=5))))
    if pair[0].model.anatomy.fills:
        same(pair, lambda one: head_effects(one, one.run(TEXT), hidden=(1, 4)))


@pytest.mark.parametrize("name", [pytest.param("windows", marks=pytest.mark.deep), "two vocabularies"])
def test_every_change_gives_the_same(name, of_name):
    """A change that makes no sense in a model is refused there with the same words."""
    pair = of_name(name)
    found = [[attempt(one, kind) for kind in KINDS.values()] for one in pair]
    assert plain(found[1]) == plain(found[0])
    assert sum(isinstance(one, Trace) for one in found[0]) > len(KINDS) / 2


def attempt(checkpoint, kind):
    change = example(kind, checkpoint, TEXT)
    try:
        return checkpoint.run(checkpoint.query(TEXT, max_new=2, interventions=(change,)))
    except QueryError as error:
        return error


if torch.cuda.is_available():  # where there is no GPU there is nothing to test, and so no test

    @pytest.mark.parametrize("name", [*FEATURED, "two vocabularies", "filling"])
    def test_a_gpu_makes_the_same_changes(name, of_name):
        here, _ = of_name(name)
        there = load(here.folder, device="cuda")
        changed = [[attempt(one, kind) for kind in KINDS.values()] for one in (here, there)]
        assert [isinstance(one, Trace) for one in changed[1]] == [isinstance(one, Trace) for one in changed[0]]
