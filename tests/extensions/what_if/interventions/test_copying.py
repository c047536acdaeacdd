"""What a change takes from a run on another sentence stands in its place, and nothing else is touched there."""

import numpy as np
import pytest

from glassformer.extensions.what_if.interventions import CopyMap, HeadsTold, Patch, Temper
from transformer import run, run_batch
from transformer.errors import QueryError
from transformer.runs import apply_interventions
from transformer.runs.inputs import read_source
from transformer.runs.interventions import ChangeError
from transformer.runs.running import replay

SOURCE, OTHER, SHORTER = "ba lo mi ta", "mi ta lo ba", "mi ta"
FORCED = (9, 5, 7, 12, 30, 6)  # what the decoder reads behind its start
MAPS = {"encoder": "encoder.1.self_attn", "decoder": "decoder.1.self_attn", "cross": "decoder.1.cross_attn"}


def changed(checkpoint, *changes):
    return run(checkpoint, checkpoint.query(SOURCE, interventions=changes, forced=FORCED, max_new=len(FORCED) + 1))


def values(checkpoint, trace, site):
    return replay(checkpoint, trace, [site])[site].copy()


@pytest.mark.parametrize(("kind", "text"), [(kind, OTHER) for kind in MAPS] + [("decoder", SHORTER)])
def test_a_map_is_that_of_another_sentence(both, kind, text):
    """As far as both runs have it; what comes later weighs nothing."""
    here, plain, other = changed(both, CopyMap(kind, 1, 2, text=text)), changed(both), run(both, both.query(text))
    found, own, taken = (trace.maps(kind)[1] for trace in (here, plain, other))
    rows = min(own.shape[1], taken.shape[1])
    expected = own.copy()
    expected[2, :rows] = 0
    width = min(own.shape[2], taken.shape[2])
    expected[2, :rows, :width] = taken[2, :rows, :width]
    np.testing.assert_allclose(found[2], expected[2], atol=1e-6)
    np.testing.assert_allclose(found[:2], own[:2], atol=1e-5 if kind != "cross" else 1)
    np.testing.assert_allclose(here.maps(kind)[0], plain.maps(kind)[0], atol=1e-6)  # the layer below
    assert np.abs(here.log_probs - plain.log_probs).max() > 1e-4
    everywhere = changed(both, CopyMap(kind, text=text)).maps(kind)
    np.testing.assert_allclose(everywhere[0, :, :rows, :width], other.maps(kind)[0, :, :rows, :width], atol=1e-6)


PATCHES = [
    (Patch(stack="encoder", layer=0, value="layer", token=1, text=SHORTER), "encoder.0.output"),
    (Patch(stack="decoder", layer=0, value="layer", token=1, text=OTHER), "decoder.0.output"),
    (Patch(stack="decoder", layer=1, value="crossoutput", text=OTHER), "decoder.1.cross_attn.output"),
    (Patch(stack="encoder", layer=1, value="selfheads", text=SHORTER), "encoder.1.self_attn.heads"),
    (Patch(stack="decoder", layer=1, value="selfheads", token=0, text=OTHER), "decoder.1.self_attn.heads"),
]


@pytest.mark.parametrize(("change", "site"), PATCHES, ids=str)
def test_a_value_is_that_of_another_sentence(both, change, site):
    here, other = changed(both, change), run(both, both.query(change.text))
    found, own, taken = (values(both, trace, site) for trace in (here, changed(both), other))
    n = min(own.shape[-2], taken.shape[-2])
    tokens = range(n) if change.token is None else [change.token]
    own[..., tokens, :] = taken[..., tokens, :]
    np.testing.assert_allclose(found, own, atol=1e-5)
    assert np.abs(here.log_probs - changed(both).log_probs).max() > 1e-4


def test_a_prompt_is_patched(decoder):
    here = changed(decoder, Patch(stack="decoder", layer=0, token=2, text=OTHER))
    other = run(decoder, decoder.query(OTHER))
    found, own, taken = (values(decoder, trace, "decoder.0.output") for trace in (here, changed(decoder), other))
    own[2] = taken[2]
    np.testing.assert_allclose(found, own, atol=1e-5)


def test_the_whole_memory_of_another_sentence_is_its_translation(both):
    """Everything that the decoder reads is patched, so that the output is that of the other sentence."""
    plain, other = (run(both, both.query(text, forced=FORCED)) for text in (SOURCE, OTHER))
    assert len(plain.src_ids) == len(other.src_ids)
    found = changed(both, Patch(stack="encoder", value="final", text=OTHER))
    assert np.abs(found.log_probs[:7] - plain.log_probs[:7]).max() > 1e-2
    np.testing.assert_allclose(found.log_probs[:7], other.log_probs[:7], atol=1e-5)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([Patch(stack="encoder", layer=0, token=4, text=SHORTER)],
         "names token 5, but the run of the other sentence has only 3 tokens"),
        ([Patch(stack="encoder", layer=0, token=9, text=OTHER)], "names token 10 of the source"),
        ([Patch(stack="encoder", layer=0, value="crosskeys", text=OTHER)], "an encoder has none"),
        ([Patch(stack="decoder", layer=2, text=OTHER)], "names layer 3"),
        ([Patch(stack="decoder", layer=0, token=30, text=OTHER)], "reads at most 24"),
        ([CopyMap("cross", 0, text="ba " * 40)], "cannot be read"),
        ([CopyMap("cross", 0, text=OTHER), HeadsTold(2)],
         "takes 3 heads from a run of the unchanged model, but this run has 2"),
        ([Patch(stack="decoder", layer=0, value="selfheads", text=OTHER), HeadsTold(2)], "takes 3 heads"),
    ],
    ids=str,
)  # fmt: skip
def test_what_a_model_or_a_sentence_has_not_is_refused(both, changes, said):
    with pytest.raises(ChangeError, match=said):
        changed(both, *changes)


def test_a_map_over_another_source_is_refused_with_both_lengths(both):
    n, here = (len(read_source(both, both.query(text)).ids) for text in (SHORTER, SOURCE))
    for kind in ("encoder", "cross"):
        with pytest.raises(ChangeError, match=f"takes an attention map over {n} tokens, but this source has {here}"):
            changed(both, CopyMap(kind, 0, 0, text=SHORTER))
    with pytest.raises(ChangeError, match="this source has"):
        run_batch(both, [both.query(t, interventions=(CopyMap("cross", 0, text=OTHER),)) for t in (SOURCE, SHORTER)])
    with pytest.raises(QueryError, match="does not belong to a single layer"):
        Patch(stack="encoder", layer=0, value="final", text=OTHER)


def test_the_other_sentence_is_run_once_for_a_tap(both, monkeypatch):
    times, whole = [], apply_interventions._other
    monkeypatch.setattr(apply_interventions, "_other", lambda *a, **k: times.append(a) or whole(*a, **k))
    changed(both, CopyMap("decoder", text=OTHER), Temper("cross", 0))
    assert len(times) == 1
