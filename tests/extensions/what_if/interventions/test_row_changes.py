"""Changes of rows of a map, each against the same change written by hand."""

import numpy as np
import pytest
import torch

from glassformer.extensions.what_if.interventions import Drop, Force, MeanHead, Mute, Pads, Temper, Weigh, ZeroHead
from tests.extensions.what_if.interventions.reference import SOURCE, Reference, assert_same
from transformer import run, run_batch
from transformer.errors import QueryError
from transformer.runs.interventions import ChangeError, checked

NAMES = {"encoder": "encoder.1.self_attn", "decoder": "decoder.1.self_attn", "cross": "decoder.1.cross_attn"}


def rewriting(names, heads, queries, row):
    """These rows through a function of the weights and of which keys may be seen, both lists."""

    class Rewritten(Reference):
        def weights(self, scores, mask, name, head):
            weights = super().weights(scores, mask, name, head)
            if name in names and head in heads:
                for query in set(queries) & set(range(len(weights))):
                    new = row(weights[query].tolist(), mask[query].tolist())
                    weights[query] = torch.tensor(new, dtype=torch.float64)
            return weights

    return Rewritten


def muted(key, renormalised):
    def row(weights, may):
        left = [0.0 if k == key else w for k, w in enumerate(weights)]
        return [w / sum(left) if sum(left) else 0.0 for w in left] if renormalised else left

    return row


def forced(key):
    def row(weights, may):
        return [float(k == key) for k in range(len(may))] if key < len(may) and may[key] else weights

    return row


def given(numbers, renormalised):
    def row(weights, may):
        raw = [x * m for x, m in zip([*numbers, *[0.0] * len(may)], may, strict=False)]
        return [x / sum(raw) if sum(raw) else 0.0 for x in raw] if renormalised else raw

    return row


def softened(weights, may):
    """The cube roots, renormalised: as if scores had been divided by 3."""
    return [w ** (1 / 3) / sum(other ** (1 / 3) for other in weights) for w in weights]


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("renormalised", [True, False])
def test_a_key_is_muted(both, kind, renormalised):
    by_hand = rewriting([NAMES[kind]], [2], [3], muted(1, renormalised))
    assert_same(both, [Mute(kind, 1, 2, query=3, key=1, renormalised=renormalised)], by_hand)


@pytest.mark.parametrize("kind", NAMES)
def test_all_weight_is_on_one_key(both, kind):
    assert_same(both, [Force(kind, 1, 0, query=3, key=1)], rewriting([NAMES[kind]], [0], [3], forced(1)))
    # of all rows only those that may see the key
    assert_same(both, [Force(kind, 1, key=2)], rewriting([NAMES[kind]], range(3), range(9), forced(2)))


@pytest.mark.parametrize("kind", NAMES)
def test_weights_are_set_by_hand(both, kind):
    numbers = (0.5, 0.0, 2.0, 1.0)
    for renormalised in (True, False):
        by_hand = rewriting([NAMES[kind]], [1], [2], given(numbers, renormalised))
        assert_same(both, [Weigh(kind, 1, 1, query=2, weights=numbers, renormalised=renormalised)], by_hand)


def test_all_layers_heads_and_queries(both, decoder):
    own = ["decoder.0.self_attn", "decoder.1.self_attn"]
    assert_same(decoder, [Mute("decoder", key=0)], rewriting(own, range(3), range(99), muted(0, True)))
    assert_same(decoder, [Force("decoder", None, 1, query=6, key=2)], rewriting(own, [1], [6], forced(2)))
    cross = ["decoder.0.cross_attn", "decoder.1.cross_attn"]
    assert_same(both, [Mute("cross", None, 1, key=3)], rewriting(cross, [1], range(9), muted(3, True)))


def test_what_comes_later_weighs_nothing(both):
    """Whatever is forced, weighed or muted, in rows that may not see it; and padding weighs nothing either."""
    changes = (Force("decoder", 0, key=4), Weigh("decoder", 1, query=1, weights=(1, 1, 1, 1)),
               Force("cross", 0, query=2, key=1), Pads(2))  # fmt: skip
    trace = run(both, both.query(SOURCE, interventions=changes, forced=(9, 5, 7, 12, 30, 6), max_new=7))
    rows = trace.decoder_self.shape[-2]
    assert (trace.decoder_self[..., ~np.tri(rows, dtype=bool)] == 0).all()
    assert (trace.decoder_self[0, :, 4:, 4] == 1).all()
    assert np.allclose(trace.decoder_self[1, :, 1, :2], 0.5)
    assert (trace.cross[..., -2:] == 0).all()


def test_rows_act_together(both):
    assert_same(
        both,
        [Temper("cross", 1, temperature=3), Mute("cross", 1, 0, key=0), Force("cross", 1, 0, query=1, key=2)],
        rewriting([NAMES["cross"]], range(3), range(9), softened),
        rewriting([NAMES["cross"]], [0], range(9), muted(0, True)),
        rewriting([NAMES["cross"]], [0], [1], forced(2)),
    )  # fmt: skip

    class Padded(Reference):
        def edited(self, ids):
            return [*super().edited(ids), 0, 0]

    class Zeroed(Reference):
        def head(self, output, mask, name, head):
            return super().head(output, mask, name, head) * (name != "decoder.0.cross_attn" or head != 1)

    assert_same(
        both,
        [Pads(2), Mute("encoder", 0, key=2), ZeroHead("cross", 0, 1)],
        Padded, rewriting(["encoder.0.self_attn"], range(3), range(9), muted(2, True)), Zeroed,
    )  # fmt: skip


def test_a_row_whose_only_weight_is_muted_has_none(both):
    changes = (Force("cross", 0, 0, query=1, key=2), Mute("cross", 0, 0, query=1, key=2))
    trace = run(both, both.query(SOURCE, interventions=changes, forced=(9, 5)))
    assert (trace.cross[0, 0, 1] == 0).all()
    assert trace.cross[0, 0, 0].sum() == pytest.approx(1)


def test_a_batch_gives_each_sentence_what_it_gets_alone(both):
    changes = (Force("cross", 0, query=2, key=1), Mute("encoder", 1, key=0), MeanHead("decoder", 0, 0))
    queries = [both.query(text, interventions=changes, max_new=7) for text in (SOURCE, "mi", "ta ku ne so ri")]
    for query, found in zip(queries, run_batch(both, queries), strict=True):
        alone = run(both, query)
        assert found.tgt_ids == alone.tgt_ids
        np.testing.assert_allclose(found.log_probs, alone.log_probs, atol=1e-4)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            Mute("cross", 0, 0, key=15),
            r"mute-cross\.1\.1\.all\.16\.1 names token 16 of the source, but this source has only tokens",
        ),
        (Force("encoder", 0, 0, query=15, key=0), "names token 16 of the source"),
        (Mute("decoder", 0, 0, key=24), "names token 25, but this model reads at most 24 tokens"),
        (Force("decoder", 0, 3, key=0), "names head 4"),
        (Weigh("cross", 0, 0, query=1, weights=(1.0,) * 12), r"gives 12 weights, but the source has only \d+ tokens"),
    ],
)
def test_what_a_sentence_has_not_is_refused(both, change, said):
    with pytest.raises(ChangeError, match=said):
        run(both, both.query(SOURCE, interventions=(change,)))


def test_places_are_those_of_the_changed_source(both):
    last = len(run(both, both.query(SOURCE)).src_ids) - 1
    run(both, both.query(SOURCE, interventions=(Mute("cross", 0, key=last),)))
    with pytest.raises(ChangeError, match="names token"):
        run(both, both.query(SOURCE, interventions=(Mute("cross", 0, key=last), Drop(0))))


def test_contradictions_are_refused():
    with pytest.raises(QueryError, match="change the same thing"):
        checked([Force("cross", 0, 0, query=1, key=2), Force("cross", 0, 0, query=1, key=3)])
    with pytest.raises(QueryError, match="cannot be renormalised"):
        Weigh("cross", 0, 0, query=1, weights=(0, 0))
    assert len(checked([Mute("cross", 0, 0, key=2), Mute("cross", 0, 0, key=3)])) == 2
