"""A changed source is read as the edited ids by the unchanged model, and its special pieces stay around it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from glassformer.extensions.what_if.interventions import Blank, Drop, Mute, Pads, Replace, Shuffle, Swap, Weigh
from glassformer.extensions.what_if.interventions.piece_changes import own_places
from transformer import Query, run
from transformer.errors import QueryError
from transformer.runs.inputs import read_source
from transformer.runs.interventions import ChangeError

SOURCE = "ba lo mi ta ku ne so ri"
FORCED = (9, 5, 7)


def ids_of(checkpoint, *changes, text=SOURCE):
    return read_source(checkpoint, checkpoint.query(text, interventions=changes)).ids


EDITS = [
    ([Replace(2, 11)], lambda ids: [*ids[:2], 11, *ids[3:]]),
    ([Drop(1)], lambda ids: [ids[0], *ids[2:]]),
    ([Swap(0, 2)], lambda ids: [ids[2], ids[1], ids[0], *ids[3:]]),
    ([Drop(1), Swap(0, 2)], lambda ids: [ids[3], ids[2], ids[0], *ids[4:]]),
    ([Swap(0, 2), Drop(1)], lambda ids: [ids[2], ids[0], *ids[3:]]),
]


@pytest.mark.parametrize(("changes", "edited"), EDITS)
def test_the_model_reads_the_edited_ids(checkpoint, changes, edited):
    trace = run(checkpoint, checkpoint.query(SOURCE, interventions=changes, forced=FORCED))
    assert list(trace.src_ids) == edited(list(ids_of(checkpoint)))
    read, src = torch.tensor([trace.read_ids]), torch.tensor([trace.src_ids])
    with torch.inference_mode():
        rows = checkpoint.model(src, read)[0].log_softmax(-1)[trace.first_row :]
    np.testing.assert_allclose(trace.log_probs, rows, atol=1e-5)


def test_padding_changes_nothing_under_a_mask(both):
    plain, padded = (run(both, both.query(SOURCE, interventions=some)) for some in ((), (Pads(3),)))
    assert padded.src_ids == (*plain.src_ids, 0, 0, 0)
    assert padded.src_ids[-4] == both.config.eos_id
    assert padded.n_tokens("encoder") == len(plain.src_ids)
    assert not padded.cross_mask[:, -3:].any()
    np.testing.assert_allclose(padded.log_probs, plain.log_probs, atol=1e-5)


def test_shuffled_pieces_are_the_same_between_the_same_ends(checkpoint):
    plain = ids_of(checkpoint)
    own = own_places(plain, checkpoint.config)
    found = {ids_of(checkpoint, Shuffle(seed)) for seed in range(8)}
    assert len(found) > 4
    for ids in found:
        assert sorted(ids) == sorted(plain)
        assert (ids[: own.start], ids[own.stop :]) == (plain[: own.start], plain[own.stop :])
    assert ids_of(checkpoint, Shuffle(3)) == ids_of(checkpoint, Shuffle(3))


def test_padding_stays_behind_what_is_shuffled(both):
    assert ids_of(both, Pads(2), Shuffle(3)) == (*ids_of(both, Shuffle(3)), 0, 0)


def test_places_are_those_of_the_changed_source(both):
    last = len(ids_of(both)) - 1
    run(both, both.query(SOURCE, interventions=(Mute("cross", 0, key=last),)))
    weigh = Weigh("cross", 0, query=1, weights=(1.0,) * 12)
    for text, refused, said in (
        (SOURCE, (Mute("cross", 0, key=last), Drop(0)), "names token"),
        ("mi", (weigh,), r"gives 12 weights, but the source has only \d+ tokens"),
    ):
        with pytest.raises(ChangeError, match=said):
            run(both, both.query(text, interventions=refused))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (Replace(40, 11), r"replace-41\.11 names token 41, but the source has only \d+ tokens"),
        (Drop(40), "drop-41 names token 41"),
        (Swap(0, 40), r"swap-1\.41 names token 41"),
        (Blank(40), "blank-41 names token 41"),
        (Replace(0, 9_000), "its vocabulary has the ids 0 to"),
        (Replace(0, 0), "puts padding into the source"),
    ],
)
def test_what_a_sentence_has_not_is_refused(checkpoint, change, said):
    with pytest.raises(ChangeError, match=said):
        run(checkpoint, checkpoint.query(SOURCE, interventions=(change,)))


def test_padding_needs_room_and_a_model_that_may_have_it(both, decoder):
    with pytest.raises(ChangeError, match=r"makes the source .* tokens long, but this model reads at most 24"):
        ids_of(both, Pads(22))
    with pytest.raises(ChangeError, match="This is a decoder-only model: it continues where its prompt ends"):
        ids_of(decoder, Pads(2))
    assert "no padding token" in str(Pads.unfit(replace(decoder.config, pad_id=None)))


def test_the_last_piece_is_not_dropped_and_a_swap_is_of_two(decoder):
    n = len(read_source(decoder, Query(checkpoint=decoder.content_hash, source="ba")).ids)
    with pytest.raises(ChangeError, match="leaves nothing to read"):
        Drop(0).edited((5,), decoder.config)
    assert len(ids_of(decoder, Drop(0), text="ba")) == n - 1
    with pytest.raises(QueryError, match="cannot change places with itself"):
        Swap(3, 3)
    assert Swap(1, 2).target == Swap(2, 1).target
