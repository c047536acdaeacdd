"""Measures of heads from weights alone."""

import numpy as np

from transformer import load
from transformer.analysis import head_statistics as hs


def test_weights_alone_have_the_measures_of_a_run_but_for_what_only_the_run_knows():
    checkpoint = load("checkpoints/reverse")
    trace = checkpoint.run("abcdef")
    for kind in trace.kinds:
        whole = hs.measure(trace, kind, eos_id=checkpoint.config.eos_id)
        alone = hs.measure_maps(trace.maps(kind), trace.mask(kind), kind)
        assert set(whole) - set(alone) == ({"end"} if kind != "decoder" else set())
        for name in alone:
            np.testing.assert_array_equal(alone[name].values, whole[name].values)


def test_self_attention_over_other_keys_than_its_queries_has_no_distances():
    weights = np.full((1, 2, 3, 5), 0.2)
    names = set(hs.measure_maps(weights, np.ones((3, 5), bool), "decoder"))
    assert names == {"entropy", "entropy_share", "largest", "first"}
