"""The loss by which answers are ranked is as it is defined, whatever is computed together."""

import math
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from tests.transformer.tiny import DECODER, ENCODER, tiny_model
from transformer.analysis.losses import Samples, loss_of
from transformer.errors import DataError, QueryError
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
