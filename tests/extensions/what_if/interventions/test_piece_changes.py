"""Changes of what is read, each against the same change written by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from glassformer.extensions.what_if.interventions import Blank, Drop, Pads, Replace, Shuffle, Swap
from glassformer.extensions.what_if.interventions.piece_changes import own_places
from tests.extensions.what_if.interventions.reference import SOURCE, Reference, assert_same, made, reference_of
from transformer import Query, run
from transformer.errors import QueryError
from transformer.runs.interventions import ChangeError
from transformer.runs.source import read_source


def ids_of(checkpoint, *changes, text=SOURCE):
    return read_source(checkpoint, checkpoint.query(text, interventions=changes)).ids


class Replaced(Reference):
    def edited(self, ids):
        ids = super().edited(ids)
        ids[2] = 11
        return ids


class Dropped(Reference):
    def edited(self, ids):
        ids = super().edited(ids)
        del ids[1]
        return ids


class Swapped(Reference):
    def edited(self, ids):
        a, b, c, *rest = super().edited(ids)
        return [c, b, a, *rest]


class Padded(Reference):
    def edited(self, ids):
        return [*super().edited(ids), 0, 0, 0]


class Blanked(Reference):
    def tokens(self, ids, stack):
        x = super().tokens(ids, stack)
        if stack == ("encoder" if self.c.n_encoder_layers else "decoder"):
            x = torch.stack([row * (place != 1) for place, row in enumerate(x)])
        return x


PAIRS = {
    "replace": (Replace(2, 11), Replaced),
    "drop": (Drop(1), Dropped),
    "swap": (Swap(0, 2), Swapped),
    "blank": (Blank(1), Blanked),
}


@pytest.mark.parametrize("name", PAIRS)
def test_one_change_is_the_same_change_by_hand(checkpoint, name):
    intervention, by_hand = PAIRS[name]
    assert_same(checkpoint, [intervention], by_hand)


def test_three_changes_act_in_their_order(checkpoint):
    assert_same(checkpoint, [Drop(1), Blank(1), Swap(0, 2)], Dropped, Blanked, Swapped)
    assert ids_of(checkpoint, Drop(1), Swap(0, 2)) != ids_of(checkpoint, Swap(0, 2), Drop(1))


def test_padding_changes_nothing_under_a_mask(both):
    assert_same(both, [Pads(3)], Padded, differs=False)
    assert_same(both, [Pads(3), Blank(1)], Padded, Blanked)
    assert ids_of(both, Pads(3))[-4:] == (both.config.eos_id, 0, 0, 0)
    trace = run(both, both.query(SOURCE, interventions=(Pads(3),)))
    assert trace.n_tokens("encoder") == len(trace.src_ids) - 3
    assert not trace.cross_mask[:, -3:].any()


def test_shuffled_pieces_are_the_same_between_the_same_ends(checkpoint):
    text = "ba lo mi ta ku ne so ri"
    plain, seeds = ids_of(checkpoint, text=text), range(8)
    own = own_places(plain, checkpoint.config)
    found = {ids_of(checkpoint, Shuffle(seed), text=text) for seed in seeds}
    assert len(found) > 4
    for ids in found:
        assert sorted(ids) == sorted(plain)
        assert (ids[: own.start], ids[own.stop :]) == (plain[: own.start], plain[own.stop :])
    assert ids_of(checkpoint, Shuffle(3), text=text) == ids_of(checkpoint, Shuffle(3), text=text)
    changed = run(checkpoint, checkpoint.query(text, interventions=(Shuffle(3),), forced=(9, 5)))

    class Shuffled(Reference):
        def edited(self, ids):
            return list(ids_of(checkpoint, Shuffle(3), text=text))

    by_hand = reference_of(checkpoint, Shuffled)
    np.testing.assert_allclose(changed.log_probs[:3], by_hand.log_probs(plain, (9, 5)), atol=1e-4)


def test_padding_stays_behind_what_is_shuffled(both):
    ids = ids_of(both, Pads(2), Shuffle(3))
    assert ids[-3:] == (both.config.eos_id, 0, 0)
    assert ids[:-2] == ids_of(both, Shuffle(3))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (Replace(40, 11), r"replace-41\.11 names token 41, but the source has only \d+ tokens"),
        (Drop(40), "drop-41 names token 41"),
        (Swap(0, 40), r"swap-1\.41 names token 41"),
        (Blank(40), "blank-41 names token 41"),
        (Replace(0, 9_000), "the source's pieces have the ids 0 to"),
        (Replace(0, 0), "puts padding into the source"),
    ],
)
def test_what_a_sentence_has_not_is_refused(checkpoint, change, said):
    with pytest.raises(ChangeError, match=said):
        run(checkpoint, checkpoint.query(SOURCE, interventions=(change,)))


def test_padding_needs_room_and_a_model_that_may_have_it(both, tmp_path):
    with pytest.raises(ChangeError, match=r"makes the source .* tokens long, but this model reads at most 24"):
        ids_of(both, Pads(22))
    decoder = made(tmp_path, "decoder")
    with pytest.raises(ChangeError, match="This is a decoder-only model: it continues where its prompt ends"):
        ids_of(decoder, Pads(2))
    without = replace(decoder.config, pad_id=None)
    assert "no padding piece" in str(Pads.unfit(without))


def test_a_source_of_one_piece_is_not_dropped(tmp_path):
    decoder = made(tmp_path, "decoder")
    first = Drop(0)
    query = Query(checkpoint=decoder.content_hash, source="ba")
    n = len(read_source(decoder, query).ids)
    with pytest.raises(ChangeError, match="leaves nothing to read"):
        first.edited((5,), decoder.config)
    assert len(ids_of(decoder, first, text="ba")) == n - 1


def test_a_swap_is_of_two():
    with pytest.raises(QueryError, match="cannot change places with itself"):
        Swap(3, 3)
    assert Swap(1, 2).target == Swap(2, 1).target
