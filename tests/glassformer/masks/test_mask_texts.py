"""What the Masks page says of its checks and of common mistakes is so, and its batch is decoded as the run is."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from glassformer.masks.mask_texts import MISTAKES, causality_verdict
from glassformer.masks.scene import companion_query
from tests.transformer.made_up_changes import SilentHead
from transformer.analysis.mask_checks import Movement
from transformer.runs.query import Beam, Query

T = 5
CAUSAL = torch.ones(T, T).tril().bool()
ADDED = torch.zeros(T, T).masked_fill(~CAUSAL, -torch.inf)  # 0 = open, −∞ = closed


def moved(*kept, elsewhere=0.0):
    rows = np.array(kept, dtype=np.float32)
    return Movement(kept=rows, taken=rows + 1, largest=8.0, elsewhere=elsewhere)


@pytest.mark.parametrize(
    ("found", "place", "held", "said"),
    [
        (moved(0, 0, 2.5), 2, True, "Rows 1 to 2 changed by exactly 0, row 3 by 2.5. "),
        (moved(0, 1.5, 2.5), 1, True, "Row 1 changed by exactly 0, rows 2 to 3 by 1.5 to 2.5. "),
        (moved(0.5, 0, 2.5), 1, False, "Row 1 changed by 0.5"),
        (moved(0, 0, 2.5, elsewhere=1.0), 2, False, "Rows of the other sentences changed by 1."),
    ],
)
def test_a_row_that_moved_before_the_change_or_in_another_sentence_is_a_fault(found, place, held, said):
    is_held, sentence = causality_verdict(found, place=place, n_rows=3, n_sentences=1 + bool(found.elsewhere))
    assert is_held == held
    assert said in sentence
    assert ("the mask does hide what comes later" in sentence) == held
    assert ("earlier rows can see what comes later" in sentence) == (not held)


def test_two_conventions_do_the_opposite_and_do_not_combine():
    scores = torch.randn(T, T, generator=torch.Generator().manual_seed(0))
    for fill in (-1e9, -torch.inf):
        weights = scores.masked_fill(ADDED == 0, fill).softmax(-1)
        assert weights[:-1].tril().max() == 0  # a query sees only what comes after it
        if fill == -1e9:  # for the last one every key is closed
            torch.testing.assert_close(weights[-1], torch.full((T,), 1 / T))
        else:
            assert weights[-1].isnan().all()
    assert "If closed scores become −1e9, its weights are all equal; if they become −∞, its weights are NaN" in MISTAKES
    pad = torch.ones(T, T).bool()
    assert torch.equal(pad & ADDED.bool(), ~CAUSAL)
    assert torch.equal(pad & (ADDED == 0), CAUSAL)
    with pytest.raises(RuntimeError):
        _ = CAUSAL & ADDED


def test_a_mask_along_the_wrong_axis_closes_something_else():
    ids = torch.tensor([[3, 4, 0]])
    queries, keys = (ids != 0)[:, None, :, None], (ids != 0)[:, None, None, :]
    assert queries.expand(1, 1, 3, 3)[0, 0].tolist() == [[True] * 3, [True] * 3, [False] * 3]  # padding is still read
    assert keys.expand(1, 1, 3, 3)[0, 0].tolist() == [[True, True, False]] * 3
    assert torch.zeros(1, 1, 3, 3).masked_fill(~queries, -torch.inf).softmax(-1)[0, 0, 2].isnan().all()
    mask = torch.ones(2, T, T).bool()
    mask[1] = False  # sentence 2 sees nothing
    seen = mask.broadcast_to(2, 2, T, T)  # lined up with heads, of which there are as many as sentences: no error
    assert seen[:, 0].all()
    assert not seen[:, 1].any()


def test_a_companion_is_decoded_by_the_model_as_it_is_changed_and_nothing_is_forced():
    own = Query(
        checkpoint="hash", source="abc", decoding=Beam(size=3), max_new=20, forced=(5, 6), hypothesis=2,
        interventions=(SilentHead("cross", 1, 0),),
    )  # fmt: skip
    assert companion_query(own, "de") == replace(own, source="de", forced=(), hypothesis=0)
