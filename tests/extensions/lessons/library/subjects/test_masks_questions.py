"""What is asked about masks has the answer of layer 1 in numpy, and of runs made another way."""

import numpy as np
import pytest

from glassformer.extensions.lessons.library.case import Case
from glassformer.extensions.lessons.library.subjects import masks_questions
from glassformer.extensions.lessons.library.survey import case_of
from glassformer.extensions.what_if.interventions import PaddingMask, Pads
from tests.extensions.lessons.library.posed import picked
from tests.healthy import healthy

SENTENCES = {"zh-en": "他昨天看见那只猫。", "en-fr": "The old man wants bread.", "reverse": "house"}
ROUNDING = 1e-4


@pytest.fixture(params=SENTENCES)
def case(request):
    return case_of(healthy(request.param), SENTENCES[request.param])


def scores_by_hand(case: Case) -> np.ndarray:
    """q . k / sqrt(d_head) of the decoder's first layer, [H, T, T] in float64."""
    config, model = case.checkpoint.config, case.checkpoint.model
    state = {name: tensor.numpy().astype(np.float64) for name, tensor in model.state_dict().items()}
    ids, d = list(case.trace.read_ids), config.d_model
    table = state["src_table"] if config.shared_vocab else state["tgt_table"]
    x = table[ids] * np.sqrt(d) + model.decoder.embedding.positions.table.detach().numpy()[: len(ids)]
    if config.norm == "pre":
        at = "decoder.layers.0.self_attn_residual.norm"
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + config.norm_eps)
        x = x * state[f"{at}.weight"] + state[f"{at}.bias"]
    q, k = (
        x @ state[f"decoder.layers.0.self_attn.{part}.weight"].T + state[f"decoder.layers.0.self_attn.{part}.bias"]
        for part in ("q_proj", "k_proj")
    )
    q, k = (one.reshape(len(ids), config.n_heads, -1).transpose(1, 0, 2) for one in (q, k))
    return q @ k.transpose(0, 2, 1) / np.sqrt(config.d_head)


def test_a_row_sees_itself_and_what_came_before(case):
    posed = picked(masks_questions.masked_row, case)
    row = posed.picked["row"]
    answer = masks_questions.keys_seen(posed)
    assert answer.right == "itself"
    assert answer.values["k"] == row == len(range(row))
    assert posed.picked["read"] == case.trace.read_tokens[row - 1]
    assert 1 < row < posed.picked["n"] == len(case.trace.read_ids)


def test_rows_from_the_changed_token_on_move(case):
    posed = picked(masks_questions.replaced_token, case)
    at = posed.picked["place"] - 1
    forced = list(case.trace.tgt_ids)
    forced[at - 1] = posed.picked["other_id"]  # the decoder reads it one token later
    other = case.another(forced=tuple(forced))
    moved = np.abs(other.log_probs - case.trace.log_probs[: len(other.log_probs)]).max(axis=-1)
    assert (moved[:at] < ROUNDING).all()
    assert (moved[at:] > ROUNDING).all()
    answer = masks_questions.rows_moved(posed)
    assert answer.right == "from"
    assert answer.variant == "closed"
    assert (answer.values["a"], answer.values["b"]) == (at + 1, len(case.trace.read_ids))
    assert masks_questions.rows_moved_without_mask(posed).right == "earlier"


def test_pads_are_seen_where_nothing_closes_them(case):
    posed = picked(masks_questions.pads_that_fit, case)
    pads = Pads(count=posed.picked["pads"])
    written = {"forced": case.trace.tgt_ids}
    kept = case.another(interventions=(pads,), **written).log_probs
    assert np.abs(kept - case.trace.log_probs).max() < ROUNDING
    assert masks_questions.pads_move(posed).right == "rounding"
    taken = case.another(interventions=(pads, PaddingMask(where="all", how="off")), **written).log_probs
    assert np.abs(taken - case.trace.log_probs).max() > ROUNDING
    answer = masks_questions.sides_moved_without_mask(posed)
    assert answer.right == answer.variant == "source"


def test_a_closed_key_weighs_nothing_and_would_have_weighed_this(case):
    posed = picked(masks_questions.closed_key, case)
    head, query, key = (posed.picked[name] - 1 for name in ("head", "query", "key"))
    scores = scores_by_hand(case)
    assert key > query > 0
    assert float(posed.picked["score"].replace("−", "-")) == pytest.approx(scores[head, query, key], abs=0.0051)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    later = [shares[:, q, q + 1 :].max() for q in range(1, len(scores[0]) - 1)]
    assert shares[head, query, key] == pytest.approx(max(later), rel=1e-4), "the one that would have most"
    answer = masks_questions.closed_weight(posed)
    assert answer.right == "zero"
    assert answer.values["w"] == 0
    assert answer.values["keys"] == query + 1
    assert answer.values["open"] == pytest.approx(shares[head, query, key], rel=1e-4)


def test_a_billion_closes_and_ten_does_not(case):
    posed = picked(masks_questions.closed_key, case)
    head, query = (posed.picked[name] - 1 for name in ("head", "query"))
    scores = scores_by_hand(case)[head, query]

    def left(fill):
        filled = np.where(np.arange(len(scores)) <= query, scores, fill)
        return np.exp(filled)[query + 1 :].sum() / np.exp(filled).sum()

    answer = masks_questions.fill_that_closes(posed)
    assert answer.right == "billion"
    assert answer.values["left_one"] == pytest.approx(left(-1.0), rel=1e-4)
    assert left(-10.0) > 0
    assert answer.values["left_billion"] == left(-1e9) == 0
