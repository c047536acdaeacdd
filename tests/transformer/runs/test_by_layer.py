"""A run with too many maps to keep is the same, and has its maps one layer at a time."""

from dataclasses import replace

import numpy as np
import pytest

from tests.transformer.made_up_changes import SilentHead
from transformer.errors import QueryError
from transformer.model.taps import Replacer, tap_of
from transformer.runs.dynamic_batching import run_together
from transformer.runs.reading import map_bytes, read
from transformer.runs.running import each_layer, run


@pytest.fixture(scope="module", params=["pair", "decoder", "encoder"])
def checkpoint(request):
    return request.getfixturevalue(request.param)


def long_and_short(checkpoint, **changes):
    """One query with no room for its maps, and with room."""
    query = replace(checkpoint.query("ba lo mi ta", max_new=7), **changes)
    (bare,), (full,) = (run_together(checkpoint, [query], most_map_bytes=most) for most in (0, None))
    return bare, full


def same(maps, layer):
    return maps


def test_without_room_a_run_is_the_same_but_for_its_maps(checkpoint):
    bare, full = long_and_short(checkpoint)
    assert full.keeps_maps
    assert not bare.keeps_maps
    empty = {kind: maps[:, :, :0, :0] for kind, maps in full.weights.items()}
    assert bare == replace(full, weights=empty)  # to the last bit
    assert sum(full.maps(kind).nbytes for kind in full.kinds) == map_bytes(
        checkpoint.config, len(full.src_ids) if "encoder" in full.kinds else 0, len(full.read_ids)
    )
    if bare.n_steps:
        assert bare.step(0).candidates == full.step(0).candidates


def test_its_maps_layer_by_layer_are_those_of_a_run_that_keeps_them_also_where_it_was_changed(checkpoint):
    changes = (SilentHead(checkpoint.model.anatomy.kinds[0], 0, 1),)
    for interventions in ((), changes):
        bare, full = long_and_short(checkpoint, interventions=interventions)
        for kind in full.kinds:
            for trace in (bare, full):
                np.testing.assert_array_equal(np.stack(each_layer(checkpoint, trace, kind, same)), full.maps(kind))
            (last,) = each_layer(checkpoint, bare, kind, same, layers=[len(full.maps(kind)) - 1])
            np.testing.assert_array_equal(last, full.maps(kind)[-1])
            assert not last.flags.writeable


def test_a_run_keeps_its_maps_up_to_the_limit_and_not_a_byte_beyond(pair):
    query = pair.query("ba lo mi ta", max_new=7)
    most = map_bytes(pair.config, *(len(ids) for ids in (run(pair, query).src_ids, run(pair, query).read_ids)))
    kept, gone = (next(run_together(pair, [query], most_map_bytes=n)) for n in (most, most - 1))
    assert kept.keeps_maps
    assert not gone.keeps_maps
    assert not any(site.endswith("weights") for site in read(pair, [query], most_map_bytes=0).seen)


def test_a_tap_that_mixes_tokens_gives_the_rows_of_the_steps(pair):
    tap = tap_of(Replacer({"decoder.0.self_attn.output": lambda x: x.mean(dim=1, keepdim=True).expand_as(x)}))
    query = pair.query("ba lo mi ta", max_new=5)
    full = run(pair, query, tap=tap)
    bare = replace(full, weights={kind: maps[:, :, :0, :0] for kind, maps in full.weights.items()})
    for kind in full.kinds:
        np.testing.assert_array_equal(np.stack(each_layer(pair, bare, kind, same, tap=tap)), full.maps(kind))


def test_what_cannot_be_made_again_is_refused(pair):
    bare, _ = long_and_short(pair)
    with pytest.raises(QueryError, match="no layer 9"):
        each_layer(pair, bare, "cross", same, layers=[9])
    with pytest.raises(QueryError, match="made with a checkpoint other than tiny;"):
        each_layer(pair, replace(bare, query=replace(bare.query, checkpoint="0" * 64)), "cross", same)
