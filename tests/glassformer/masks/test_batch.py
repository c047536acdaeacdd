from dataclasses import replace

from glassformer.masks.scene import companion_query
from tests.transformer.made_up_changes import SilentHead
from transformer.runs.query import Beam, Query


def test_a_companion_is_decoded_by_the_model_as_it_is_changed_and_nothing_is_forced():
    own = Query(
        checkpoint="hash", source="abc", decoding=Beam(size=3), max_new=20,
        forced=(5, 6), hypothesis=2, interventions=(SilentHead("cross", 1, 0),),
    )  # fmt: skip
    assert companion_query(own, "de") == replace(own, source="de", forced=(), hypothesis=0)
