"""What is taken from another run, against a reference into which the other run's numbers are put by hand."""

import numpy as np
import pytest
import torch

from glassformer.extensions.what_if.interventions import Blank, CopyMap, HeadsTold, Mute, Patch, Temper
from tests.extensions.what_if.interventions.reference import FORCED, SOURCE, Reference, assert_same
from transformer import run, run_batch
from transformer.errors import QueryError
from transformer.runs import apply_interventions
from transformer.runs.interventions import ChangeError
from transformer.runs.source import read_source

OTHER = "mi ta lo ba"
SHORTER = "mi ta"


class Seen(Reference):
    """Keeps all that passes."""

    def __init__(self, checkpoint):
        super().__init__(checkpoint)
        self.kept = {}

    def weights(self, scores, mask, name, head):
        return self.kept.setdefault((name, head), super().weights(scores, mask, name, head))

    def layer(self, x, name):
        return self.kept.setdefault(name, super().layer(x, name))

    def head(self, output, mask, name, head):
        return self.kept.setdefault((name, head, "heads"), super().head(output, mask, name, head))

    def attention_output(self, x, name):
        return self.kept.setdefault((name, "output"), super().attention_output(x, name))


def other_run(checkpoint, text):
    """What the reference computes on another sentence, in one pass over what the model writes there."""
    trace = run(checkpoint, checkpoint.query(text))
    seen = Seen(checkpoint)
    seen.logits(trace.src_ids, trace.read_ids)
    return seen.kept


def copying(kept, names, heads):
    class Copied(Reference):
        def weights(self, scores, mask, name, head):
            weights = super().weights(scores, mask, name, head)
            if name in names and head in heads:
                other = kept[name, head]
                for query in range(min(len(weights), len(other))):
                    for key in range(weights.size(1)):
                        weights[query, key] = other[query, key] if key < other.size(1) else 0.0
            return weights

    return Copied


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_a_map_is_that_of_another_sentence(both, kind):
    name = {"encoder": "encoder.1.self_attn", "decoder": "decoder.1.self_attn", "cross": "decoder.1.cross_attn"}[kind]
    kept = other_run(both, OTHER)
    assert_same(both, [CopyMap(kind, 1, 2, text=OTHER)], copying(kept, [name], [2]))
    names = [name.replace("1", layer) for layer in "01"]
    assert_same(both, [CopyMap(kind, text=OTHER)], copying(kept, names, range(3)))


def test_rows_of_a_decoder_that_both_runs_have_are_copied(decoder):
    for text in (SHORTER, OTHER + " " + SHORTER):
        by_hand = copying(other_run(decoder, text), ["decoder.0.self_attn"], [1])
        assert_same(decoder, [CopyMap("decoder", 0, 1, text=text)], by_hand)


def test_a_map_over_another_source_is_refused_with_both_lengths(both):
    n, here = (len(read_source(both, both.query(text)).ids) for text in (SHORTER, SOURCE))
    for kind in ("encoder", "cross"):
        with pytest.raises(ChangeError, match=f"takes an attention map over {n} tokens, but this source has {here}"):
            run(both, both.query(SOURCE, interventions=(CopyMap(kind, 0, 0, text=SHORTER),)))
    with pytest.raises(ChangeError, match="this source has"):
        run_batch(both, [both.query(t, interventions=(CopyMap("cross", 0, text=OTHER),)) for t in (SOURCE, SHORTER)])
    with pytest.raises(ChangeError, match="cannot be read"):
        run(both, both.query(SOURCE, interventions=(CopyMap("cross", 0, text="ba " * 40),)))


def patching(kept, names, tokens, kind):
    """The other run's values at these tokens, as far as both have them."""

    def put(x, other):
        return torch.stack([other[t] if t in tokens and t < len(other) else row for t, row in enumerate(x)])

    class Patched(Reference):
        def layer(self, x, name):
            x = super().layer(x, name)
            return put(x, kept[name]) if kind == "layer" and name in names else x

        def head(self, output, mask, name, head):
            x = super().head(output, mask, name, head)
            return put(x, kept[name, head, "heads"]) if kind == "heads" and name in names else x

        def attention_output(self, x, name):
            x = super().attention_output(x, name)
            return put(x, kept[name, "output"]) if kind == "output" and name in names else x

    return Patched


@pytest.mark.parametrize(
    ("change", "name", "kind"),
    [
        (Patch(stack="encoder", layer=0, value="layer", token=1, text=SHORTER), "encoder.0", "layer"),
        (Patch(stack="decoder", layer=0, value="layer", token=1, text=OTHER), "decoder.0", "layer"),
        (Patch(stack="decoder", layer=1, value="crossoutput", text=OTHER), "decoder.1.cross_attn", "output"),
        (Patch(stack="encoder", layer=1, value="selfheads", text=SHORTER), "encoder.1.self_attn", "heads"),
        (Patch(stack="decoder", layer=1, value="selfheads", token=0, text=OTHER), "decoder.1.self_attn", "heads"),
    ],
    ids=str,
)
def test_a_value_is_that_of_another_sentence(both, change, name, kind):
    tokens = range(99) if change.token is None else [change.token]
    assert_same(both, [change], patching(other_run(both, change.text), [name], tokens, kind))


def test_a_prompt_is_patched(decoder):
    change = Patch(stack="decoder", layer=0, token=2, text=OTHER)
    assert_same(decoder, [change], patching(other_run(decoder, OTHER), ["decoder.0"], [2], "layer"))


def test_what_is_taken_acts_with_others(both):
    kept = other_run(both, OTHER)

    class Blanked(Reference):
        def tokens(self, ids, stack):
            x = super().tokens(ids, stack)
            return torch.stack([row * (stack != "encoder" or t != 1) for t, row in enumerate(x)])

    class Muted(Reference):
        def weights(self, scores, mask, name, head):
            weights = super().weights(scores, mask, name, head)
            if name == "decoder.0.cross_attn":
                weights[:, 0] = 0.0
                weights = weights / weights.sum(-1, keepdim=True)
            return weights

    assert_same(
        both,
        [CopyMap("cross", 0, 1, text=OTHER), Mute("cross", 0, key=0), Blank(1)],
        copying(kept, ["decoder.0.cross_attn"], [1]), Muted, Blanked,
    )  # fmt: skip


def test_the_whole_memory_of_another_sentence_is_its_translation(both):
    """Everything that the decoder reads is patched, so that the output is that of the other sentence."""
    change = Patch(stack="encoder", value="final", text=OTHER)
    plain, other = (run(both, both.query(text, forced=FORCED)) for text in (SOURCE, OTHER))
    assert len(plain.src_ids) == len(other.src_ids)
    found = run(both, both.query(SOURCE, interventions=(change,), forced=FORCED))
    assert np.abs(found.log_probs[:7] - plain.log_probs[:7]).max() > 1e-2
    np.testing.assert_allclose(found.log_probs[:7], other.log_probs[:7], atol=1e-5)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            Patch(stack="encoder", layer=0, token=4, text=SHORTER),
            "names token 5, but the run of the other sentence has only 3 tokens",
        ),
        (Patch(stack="encoder", layer=0, token=9, text=OTHER), "names token 10 of the source"),
        (Patch(stack="encoder", layer=0, value="crosskeys", text=OTHER), "an encoder has none"),
        (Patch(stack="decoder", layer=2, text=OTHER), "names layer 3"),
        (Patch(stack="decoder", layer=0, token=30, text=OTHER), "reads at most 24"),
    ],
    ids=str,
)
def test_what_a_model_or_a_sentence_has_not_is_refused(both, change, said):
    with pytest.raises(ChangeError, match=said):
        run(both, both.query(SOURCE, interventions=(change,)))


def test_other_heads_than_those_of_the_other_run_are_refused(both):
    for change in (CopyMap("cross", 0, text=OTHER), Patch(stack="decoder", layer=0, value="selfheads", text=OTHER)):
        with pytest.raises(ChangeError, match="takes 3 heads from a run of the unchanged model, but this run has 2"):
            run(both, both.query(SOURCE, interventions=(change, HeadsTold(2))))


def test_what_is_not_in_a_layer_has_none():
    with pytest.raises(QueryError, match="does not belong to a single layer"):
        Patch(stack="encoder", layer=0, value="final", text=OTHER)


def test_the_other_sentence_is_run_once_for_a_tap(both, monkeypatch):
    times, whole = [], apply_interventions._other
    monkeypatch.setattr(apply_interventions, "_other", lambda *a, **k: times.append(a) or whole(*a, **k))
    query = both.query(SOURCE, interventions=(CopyMap("decoder", text=OTHER), Temper("cross", 0)), forced=FORCED)
    run(both, query)
    assert len(times) == 1
