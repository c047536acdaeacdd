"""A run with too many maps to keep is the same, and has its maps one layer at a time."""

from dataclasses import replace

import numpy as np
import pytest

from tests.transformer.made_up_changes import SilentHead
from transformer.errors import QueryError
from transformer.model.taps import Replacer, tap_of
from transformer.runs.reading import map_bytes, read
from transformer.runs.running import each_layer, run, run_together


def long_and_short(checkpoint, **changes):
    """One query with no room for its maps, and with room."""
    query = checkpoint.query("ba lo mi ta", max_new=7, **changes)
    (bare,), (full,) = (run_together(checkpoint, [query], most_map_bytes=most) for most in (0, None))
    return bare, full


def without_maps(trace):
    return replace(trace, weights={kind: maps[:, :, :0, :0] for kind, maps in trace.weights.items()})


def layers(checkpoint, trace, kind, **how):
    return np.stack(each_layer(checkpoint, trace, kind, lambda maps, layer: maps, **how))


@pytest.mark.parametrize("name", ["pair", "decoder", "encoder"])
def test_without_room_a_run_is_the_same_but_for_its_maps_which_it_has_layer_by_layer(name, request):
    checkpoint = request.getfixturevalue(name)
    for interventions in ((), (SilentHead(checkpoint.model.anatomy.kinds[0], 0, 1),)):
        bare, full = long_and_short(checkpoint, interventions=interventions)
        assert (full.keeps_maps, bare.keeps_maps) == (True, False)
        assert bare == without_maps(full)  # to the last bit
        n_source = len(full.src_ids) if "encoder" in full.kinds else 0
        n_bytes = sum(full.maps(kind).nbytes for kind in full.kinds)
        assert n_bytes == map_bytes(checkpoint.config, n_source, len(full.read_ids))
        if bare.n_steps:
            assert bare.step(0).candidates == full.step(0).candidates
        for kind in full.kinds:
            for trace in (bare, full):
                np.testing.assert_array_equal(layers(checkpoint, trace, kind), full.maps(kind))
            (last,) = each_layer(checkpoint, bare, kind, lambda maps, _: maps, layers=[len(full.maps(kind)) - 1])
            np.testing.assert_array_equal(last, full.maps(kind)[-1])
            assert not last.flags.writeable


def test_a_run_keeps_its_maps_up_to_the_limit_and_not_a_byte_beyond(pair):
    query = pair.query("ba lo mi ta", max_new=7)
    most = map_bytes(pair.config, *(len(ids) for ids in (run(pair, query).src_ids, run(pair, query).read_ids)))
    kept, gone = (next(run_together(pair, [query], most_map_bytes=n)) for n in (most, most - 1))
    assert (kept.keeps_maps, gone.keeps_maps) == (True, False)
    assert not any(site.endswith("weights") for site in read(pair, [query], most_map_bytes=0).seen)


def test_a_tap_that_mixes_tokens_gives_the_rows_of_the_steps_and_what_cannot_be_made_again_is_refused(pair):
    tap = tap_of(Replacer({"decoder.0.self_attn.output": lambda x: x.mean(dim=1, keepdim=True).expand_as(x)}))
    full = run(pair, pair.query("ba lo mi ta", max_new=5), tap=tap)
    bare = without_maps(full)
    for kind in full.kinds:
        np.testing.assert_array_equal(layers(pair, bare, kind, tap=tap), full.maps(kind))
    with pytest.raises(QueryError, match="no layer 9"):
        layers(pair, bare, "cross", layers=[9])
    with pytest.raises(QueryError, match="made with a checkpoint other than tiny;"):
        layers(pair, replace(bare, query=replace(bare.query, checkpoint="0" * 64)), "cross")
