"""Hiding all pieces at once is hiding them one by one, and of a hidden piece nothing is left."""

import numpy as np
import pytest
import torch

from glassformer.extensions.effects.attribution import occlusion
from glassformer.extensions.effects.attribution.target import ask, ask_each
from tests.extensions.effects.attribution.asking import asked, steps
from tests.transformer.one_stack import alone
from tests.transformer.tiny import DECODER
from transformer import load, run_batch
from transformer.errors import QueryError
from transformer.model.taps import Replacer, tap_of
from transformer.runs.array_records import whole

PIECES = [7, 9, 4, 11]
SHAPES = [
    {},
    {"norm": "post", "final_norm": False, "positions": "relative", "relative_buckets": 8, "relative_distance": 12},
    {**DECODER, "n_read": 6, "positions": "rotary"},
    {**DECODER, "n_read": 6, "mask_fill": -1e9, "windows": (3, 0, 2)},
]


def one_by_one(question, place):
    """The log-probability with one piece hidden, by changes that close one key in one mask after another."""

    def close(mask, *, crossing):
        n_keys = mask.size(-1)
        n_queries = mask.size(-2) if crossing or mask.size(-2) > 1 else n_keys
        mask = mask.expand(*mask.shape[:2], n_queries, n_keys).clone()
        own = mask[..., place, place].clone() if not crossing else None
        mask[..., place] = False
        if not crossing:
            mask[..., place, place] = own
        return mask

    crossing = {"decoder.*.cross_attn.mask": lambda mask: close(mask, crossing=True)}
    stack = {f"{question.stack}.*.self_attn.mask": lambda mask: close(mask, crossing=False)}
    changes = stack | (crossing if question.stack == "encoder" else {})
    return float(question.log_probs(tap=question.tap.also(Replacer(changes)))[0])


@pytest.mark.parametrize("shape", SHAPES)
def test_hiding_all_at_once_is_hiding_one_by_one(shape, monkeypatch):
    monkeypatch.setattr(occlusion, "MOST_TOKENS", 12)  # so that a part of the pieces is hidden at once
    monkeypatch.setattr(occlusion, "MOST_LOGITS", 150)
    every = asked(**shape)
    first_row = every.read_ids.size(1) - len(PIECES)
    questions = steps(every, PIECES, first_row=first_row)
    found, told = whole(occlusion.hiding(questions)), list(occlusion.hiding(questions))
    assert found.hidden.shape == (4, every.n_pieces)
    assert [one.whole for one in told] == [every.n_pieces] * len(told)
    assert len(told) > 1
    for step, question in enumerate(questions):
        assert found.plain[step] == pytest.approx(float(question.log_probs()), abs=1e-10)
        for place in range(every.n_pieces):
            if question.stack == "decoder" and place >= first_row + step:
                assert np.isnan(found.hidden[step, place])
            else:
                assert found.hidden[step, place] == pytest.approx(one_by_one(question, place), abs=1e-10)
    np.testing.assert_allclose(found.probability_change(1), np.exp(found.hidden[1]) - np.exp(found.plain[1]))
    changes = found.hidden[3] - found.plain[3]
    assert np.nanmax(np.abs(changes)) > 1e-3


def test_of_a_hidden_piece_nothing_is_left():
    """Another piece in its place changes nothing."""
    every = asked()
    other = every.src_ids.clone()
    other[0, 2] = 16 if other[0, 2] != 16 else 15
    there = steps(every, PIECES)
    here = [type(one)(one.model, other, one.read_ids, one.piece, one.n_source) for one in there]
    np.testing.assert_array_equal(
        whole(occlusion.hiding(there)).hidden[:, 2], whole(occlusion.hiding(here)).hidden[:, 2]
    )
    assert not np.allclose(whole(occlusion.hiding(there)).plain, whole(occlusion.hiding(here)).plain, atol=1e-3)


def test_a_change_that_mixes_tokens_is_held_fixed():
    """The mean over all tokens that were read is another at each step."""
    tap = tap_of(Replacer({"decoder.0.output": lambda x: x + x.mean(dim=1, keepdim=True)}))
    questions = steps(asked(tap=tap), PIECES)
    found = whole(occlusion.hiding(questions))
    for step, question in enumerate(questions):
        assert found.plain[step] == pytest.approx(float(question.log_probs()), abs=1e-10)
        assert found.hidden[step, 1] == pytest.approx(one_by_one(question, 1), abs=1e-10)


def test_padding_of_a_batch_is_no_piece(checkpoint_folder):
    checkpoint = load(checkpoint_folder)
    queries = [checkpoint.query(text) for text in ("ba lo mi ta", "mi ta")]
    padded, single = run_batch(checkpoint, queries)[1], checkpoint.run("mi ta")
    here, there = (
        whole(occlusion.hiding(ask_each(checkpoint, padded))),
        whole(occlusion.hiding(ask_each(checkpoint, single))),
    )
    np.testing.assert_allclose(here.hidden, there.hidden, atol=1e-5)


def test_what_cannot_be_asked_is_refused(checkpoint_folder, tmp_path):
    checkpoint = load(checkpoint_folder)
    trace = checkpoint.run("mi ta")
    for step, piece in ((-1, None), (trace.n_steps, None), (0, -1), (0, 10_000)):
        with pytest.raises(QueryError, match=r"does not exist|outside the vocabulary"):
            ask(checkpoint, trace, step, piece=piece)
    encoder = alone("encoder", tmp_path)
    with pytest.raises(QueryError, match="no decoder"):
        ask(encoder, encoder.run("mi ta"), 0)
    with pytest.raises(QueryError, match="a checkpoint other than"):
        ask(encoder, trace, 0)
    with torch.inference_mode():
        assert not ask(checkpoint, trace, 0).src_ids.is_inference()
