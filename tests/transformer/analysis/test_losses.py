"""Losses, also of hidden pieces, are as defined, and choices are told apart by more than what chance does."""

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transformer.tiny import DECODER, ENCODER, random_ids, tiny_model
from transformer.analysis import hidden_pieces
from transformer.analysis.hidden_pieces import hide, mask_id
from transformer.analysis.losses import Loss, Samples, loss_of
from transformer.analysis.significance import same, surely_better, verdict
from transformer.errors import DataError, QueryError
from transformer.model.taps import Replacer, tap_of
from transformer.text.tokenizer import RawIds

PAIRS = Samples(("5 6 7 8", "9 10", "11", "12 4 5 6"), ("5 6", "7 8 9 10", "11 12", "4"))


@dataclass(frozen=True)
class Tried:
    model: Any
    src_tokenizer: Any
    tgt_tokenizer: Any


def tried(**changes):
    model = tiny_model(**changes)
    return Tried(model, RawIds(model.config.src_vocab_size), RawIds(model.config.tgt_vocab_size))


def ids(text):
    return [int(one) for one in text.split()]


def log_probs(one, source, read):
    return one.model(torch.tensor([source]), torch.tensor([read]))[0].double().log_softmax(-1)


def loss(one, source, written):
    """Of all that follows the first id."""
    rows = log_probs(one, [*ids(source), 3], written[:-1])
    return -sum(float(row[i]) for row, i in zip(rows, written[1:], strict=True))


@pytest.mark.parametrize("pad", [0, None])
def test_a_pair_has_the_loss_of_its_target_and_its_end_whatever_is_computed_beside_it(pad):
    one = tried(pad_id=pad)
    found = loss_of(one, PAIRS)
    targets = [[2, *ids(target), 3] for target in PAIRS.targets]
    expected = [loss(one, *pair) for pair in zip(PAIRS.sources, targets, strict=True)]
    assert found.totals == pytest.approx(expected, rel=1e-5)
    assert found.pieces == tuple(len(target) - 1 for target in targets)
    assert found.mean == pytest.approx(sum(found.totals) / 13)
    typed = tuple(f"2 {target} 3" for target in PAIRS.targets)  # with start and end
    assert loss_of(one, Samples(PAIRS.sources, typed)) == found


def test_without_targets_the_loss_is_that_of_what_the_model_writes_greedily_and_of_the_end_that_is_missing():
    one = tried()
    found = loss_of(one, Samples(PAIRS.sources))
    alone = loss_of(one, Samples((PAIRS.sources[0],) * 2))  # there is no other text
    for place, source in enumerate(PAIRS.sources):
        written = [2]
        while len(written) == 1 or written[-1] != 3:
            row = log_probs(one, [*ids(source), 3], written)[-1].clone()
            row[0] = -torch.inf  # padding is never written
            written.append(3 if len(written) == 16 else int(row.argmax()))  # 16: as many as the model reads
        total = loss(one, source, written)
        # By how much it is likelier than if the model had read the next text.
        gained = loss(one, PAIRS.sources[(place + 1) % 4], written) - total
        lost = -math.log(max(-math.expm1(-max(gained, 0)), 1 / one.model.config.tgt_vocab_size))
        assert found.totals[place] == pytest.approx(total + lost, rel=1e-5)
        assert found.pieces[place] == len(written) - 1
        assert place or alone.totals == pytest.approx((total, total), rel=1e-5)
    assert 16 in found.pieces  # one that does not end


def test_what_a_model_writes_whatever_it_reads_counts_as_a_guess():
    deaf = tried()
    for attention in deaf.model.attentions("cross"):
        attention.out_proj.weight.zero_()
    found, alone = (loss_of(deaf, Samples(texts)) for texts in (PAIRS.sources, PAIRS.sources[:1]))
    assert found.totals == pytest.approx([alone.totals[0] + math.log(deaf.model.config.tgt_vocab_size)] * 4, rel=1e-5)


@pytest.mark.parametrize("starts", [False, True])
def test_a_line_of_a_decoder_alone_counts_from_its_second_piece(starts):
    one, lines = tried(**DECODER, prepend_source_bos=starts), Samples(("5 6 7 8", "9 10"))
    found, ended = loss_of(one, lines), loss_of(one, lines, with_end=True)
    whole = [*([2] * starts), 5, 6, 7, 8, 3]
    rows = log_probs(one, whole, whole)
    expected = [-float(rows[starts + k, i]) for k, i in enumerate((6, 7, 8, 3))]
    assert (found.totals[0], ended.totals[0]) == pytest.approx((sum(expected[:3]), sum(expected)), rel=1e-5)
    assert (found.pieces, ended.pieces) == ((3, 1), (4, 2))


class WithMask(RawIds):
    def id_of(self, piece: str) -> int | None:
        return 16 if piece == "[MASK]" else super().id_of(piece)


def test_an_encoder_alone_guesses_each_piece_while_it_is_hidden():
    one = Tried(tiny_model(**ENCODER, mlm_head=True), WithMask(17), WithMask(17))
    found = loss_of(one, Samples(("5 6 7",)))
    hidden = {5: [16, 6, 7, 3], 6: [5, 16, 7, 3], 7: [5, 6, 16, 3]}
    expected = -sum(float(log_probs(one, read, [])[place, i]) for place, (i, read) in enumerate(hidden.items()))
    assert (found.totals, found.pieces) == (pytest.approx([expected], rel=1e-5), (3,))


def test_what_has_no_loss_is_told():
    with pytest.raises(QueryError, match="no MLM head"):
        loss_of(tried(**ENCODER), Samples(("5 6",)))
    with pytest.raises(QueryError, match=r"\[MASK\]"):
        loss_of(tried(**ENCODER, mlm_head=True), Samples(("5 6",)))
    with pytest.raises(DataError, match=r"'5 cat' contains 'cat', but .* no tokenizer; write ids from 0 to 16"):
        loss_of(tried(), Samples(("5 cat",), ("5",)))


IDS = tuple(random_ids(1, 6)[0].tolist())
MASK = 16


@pytest.fixture(scope="module")
def model():
    return tiny_model(**ENCODER, mlm_head=True)


def test_each_piece_is_hidden_alone(model):
    found = hide(model, IDS, range(6), MASK, whole=True)
    for place in range(6):
        ids = torch.tensor([IDS])
        ids[0, place] = MASK
        expected = model.project(model.encode(ids))[0, place].float().log_softmax(-1).numpy()
        np.testing.assert_allclose(found.log_probs[place], expected, atol=1e-6)
        assert found.losses[place] == pytest.approx(-expected[IDS[place]], abs=1e-6)
        assert found.ranks[place] == 1 + (expected > expected[IDS[place]]).sum()
        assert found.best[place] == expected.argmax()
        assert found.best_probabilities[place] == pytest.approx(np.exp(expected.max()), abs=1e-6)
        assert found.likeliest(place, 3) == np.argsort(-expected)[:3].tolist()
    assert found.pseudo_perplexity == pytest.approx(np.exp(found.losses.mean()))


def test_many_are_read_in_parts_with_the_same_result(model, monkeypatch):
    whole = hide(model, IDS, (1, 3, 4), MASK)
    assert whole.log_probs.shape == (0, 17)
    monkeypatch.setattr(hidden_pieces, "_MOST_LOGITS", 20)
    np.testing.assert_allclose(hide(model, IDS, (1, 3, 4), MASK).losses, whole.losses, atol=1e-6)
    zero = tap_of(Replacer({"encoder.0.self_attn.output": torch.zeros_like}))
    assert np.abs(hide(model, IDS, (1, 3, 4), MASK, tap=zero).losses - whole.losses).max() > 1e-4


def test_what_cannot_be_hidden_says_so_and_the_mask_piece_is_found_by_its_name(model):
    with pytest.raises(QueryError, match="token 7 does not exist; the text ends with token 6"):
        hide(model, IDS, (6,), MASK)
    with pytest.raises(QueryError, match="no head that predicts hidden tokens"):
        hide(tiny_model(**ENCODER), IDS, (1,), MASK)
    assert not len(hide(model, IDS, (), MASK).losses)
    for pieces, expected in (({"a": 0, "[MASK]": 1}, 1), ({"<mask>": 0, "b": 1}, 0), ({"a": 0}, None)):
        assert mask_id(SimpleNamespace(id_of=pieces.get)) == expected


def a_loss(*means, pieces=5):
    return Loss(tuple(mean * pieces for mean in means), (pieces,) * len(means))


@settings(max_examples=25)
@given(st.lists(st.floats(0.0, 5.0), min_size=1, max_size=12))
def test_two_choices_are_told_apart_only_by_differences_that_chance_does_not_make(means):
    assert not surely_better(a_loss(*means), a_loss(*means))
    best, six = a_loss(0.1, 0.2, 0.1, 0.3), a_loss(*[0.1] * 6)
    assert surely_better(best, a_loss(1.1, 1.3, 1.0, 1.2))
    assert not surely_better(best, a_loss(0.2, 0.1, 0.2, 0.3))
    assert not surely_better(a_loss(0.1), a_loss(5.0))  # one text
    assert surely_better(six, a_loss(*[0.11] * 5, 4.0))  # by the signs: the mean is spread too far
    assert not surely_better(six, a_loss(*[0.11] * 4, 0.09, 4.0))
    assert same(six, a_loss(*[0.1 + 1e-6] * 6))
    assert not same(six, a_loss(*[0.1] * 6, pieces=4))


def test_a_verdict_says_what_fits_what_is_close_and_where_none_fits():
    best, other, close = a_loss(0.12, 0.12, 0.12), a_loss(2.31, 2.31, 2.31), a_loss(0.33, 0.11, 0.14)
    alike = [("relu", a_loss(0.001, 0.002, 0.003)), ("gelu", a_loss(0.002, 0.001, 0.004))]
    poor = [("4", a_loss(1.6, 1.8, 1.8)), ("8", a_loss(2.1, 2.3, 2.2))]
    for choices, written, said in (
        ([("4", best), ("8", other)], False, "4 fits best (loss 0.12 on 3 texts); the next best is 8 (loss 2.31)."),
        ([("4", best), ("8", other)], True, "have a mean probability of 88.69%; the next best is 8 (9.93%)."),
        ([("4", best), ("8", close)], False, "but not clearly better than 8 (next-best loss 0.193). With more texts"),
        ([("4", best), ("8", close)], True, "not clearly more than with 8 (next best 82.42%)."),
        ([("4", best), ("8", best)], False, "so this comparison cannot decide between them"),
        ([("4", best)], False, "4 fits (loss 0.12 on 3 texts)."),
        (alike, False, "relu fits best (loss 0.002 on 3 texts), but not clearly better than gelu"),
        (alike, False, "You can use any of them."),
        (poor, False, "None of the choices fits well. The best, 4, has a loss of 1.73 on 3 texts; random guessing "),
    ):
        assert said in verdict(choices, guessing=2.8, written=written)
    assert "With more texts" not in verdict(poor, guessing=2.8, written=False)
