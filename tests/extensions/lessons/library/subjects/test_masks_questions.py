"""What is asked about masks has the answer of layer 1 in numpy, and of runs made another way."""

import numpy as np

from glassformer.extensions.lessons.library.subjects import masks_questions
from glassformer.extensions.what_if.interventions import PaddingMask, Pads
from tests.extensions.lessons.library.posed import approx, picked, told

ROUNDING = 1e-4


def scores_by_hand(run):
    """q . k / sqrt(d_head) of the decoder's first layer, [H, T, T] in float64."""
    config, model = run.checkpoint.config, run.checkpoint.model
    state = {name: tensor.numpy().astype(np.float64) for name, tensor in model.state_dict().items()}
    ids, d = list(run.trace.read_ids), config.d_model
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


def test_a_row_sees_itself_and_what_came_before(run):
    posed = picked(masks_questions.masked_row, run)
    row = posed.picked["row"]
    told(masks_questions.keys_seen(posed), "itself", k=row)
    assert posed.picked["read"] == run.trace.read_tokens[row - 1]
    assert 1 < row < posed.picked["n"] == len(run.trace.read_ids)


def test_rows_from_the_changed_token_on_move(run):
    posed = picked(masks_questions.replaced_token, run)
    at, forced = posed.picked["place"] - 1, list(run.trace.tgt_ids)
    forced[at - 1] = posed.picked["other_id"]  # the decoder reads it one token later
    other = run.another(forced=tuple(forced))
    moved = np.abs(other.log_probs - run.trace.log_probs[: len(other.log_probs)]).max(axis=-1) > ROUNDING
    assert moved.tolist() == [False] * at + [True] * (len(moved) - at)
    answer = masks_questions.rows_moved(posed)
    told(answer, "from", a=at + 1, b=len(run.trace.read_ids))
    assert answer.variant == "closed"
    assert masks_questions.rows_moved_without_mask(posed).right == "earlier"


def test_pads_are_seen_where_nothing_closes_them(run):
    posed = picked(masks_questions.pads_that_fit, run)
    pads, forced, moved = Pads(count=posed.picked["pads"]), run.trace.tgt_ids, []
    for changes in ((pads,), (pads, PaddingMask(where="all", how="off"))):
        other = run.another(interventions=changes, forced=forced)
        moved.append(bool(np.abs(other.log_probs - run.trace.log_probs).max() > ROUNDING))
    assert moved == [False, True]
    assert masks_questions.pads_move(posed).right == "rounding"
    answer = masks_questions.sides_moved_without_mask(posed)
    assert answer.right == "source"


def test_a_closed_key_weighs_nothing_and_would_have_weighed_this(run):
    posed = picked(masks_questions.closed_key, run)
    head, query, key = (posed.picked[name] - 1 for name in ("head", "query", "key"))
    scores = scores_by_hand(run)
    assert key > query > 0
    assert float(posed.picked["score"].replace("−", "-")) == approx(scores[head, query, key], abs=0.0051)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    later = max(shares[:, q, q + 1 :].max() for q in range(1, len(scores[0]) - 1))
    assert shares[head, query, key] == approx(later, rel=1e-4), "the one that would have most"
    told(masks_questions.closed_weight(posed), "zero", w=0, keys=query + 1, open=approx(later, rel=1e-4))


def test_a_billion_closes_and_ten_does_not(run):
    posed = picked(masks_questions.closed_key, run)
    head, query = (posed.picked[name] - 1 for name in ("head", "query"))
    scores = scores_by_hand(run)[head, query]

    def left(fill):
        filled = np.exp(np.where(np.arange(len(scores)) <= query, scores, fill))
        return filled[query + 1 :].sum() / filled.sum()

    assert left(-10.0) > 0 == left(-1e9)
    told(masks_questions.fill_that_closes(posed), "billion", left_one=approx(left(-1.0), rel=1e-4), left_billion=0)
