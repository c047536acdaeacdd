"""A hidden piece is read as the mask piece, and guessed as the model's head guesses it."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tests.transformer.tiny import ENCODER, random_ids, tiny_model
from transformer.analysis import hidden_pieces
from transformer.analysis.hidden_pieces import hide, mask_id
from transformer.errors import QueryError
from transformer.model.taps import Replacer, tap_of

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
