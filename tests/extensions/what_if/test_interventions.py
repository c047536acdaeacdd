"""Interventions as data: checked, written and read back, and carried out in decoding, trace and replay."""

import json
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.transformer.one_stack import alone
from transformer import Beam, Greedy, Query, Sampling, ZeroHead, load, run, run_batch
from transformer.errors import QueryError
from transformer.model.anatomy import anatomy
from transformer.model.taps import NO_TAP, Recorder, tap_of
from transformer.runs.apply_interventions import tap_for
from transformer.runs.interventions import MAX_INTERVENTIONS, parse, write
from transformer.runs.replay import replay

SOURCE = "ba lo mi ta"
KINDS = ("encoder", "decoder", "cross")
ZERO_HEADS = st.builds(ZeroHead, st.sampled_from(KINDS), st.integers(0, 63), st.integers(0, 16_383))
DECODINGS = [Greedy(), Beam(size=3), Sampling(seed=4)]


# As text and as JSON


@given(st.lists(ZERO_HEADS, max_size=5, unique=True).map(tuple))
def test_what_is_written_is_read_back(interventions):
    assert parse(write(interventions)) == interventions
    query = Query(checkpoint="ab", source="x", interventions=interventions)
    assert Query.from_json(query.to_json()) == query
    assert hash(Query.from_json(query.to_json())) == hash(query)


def test_text_counts_from_1():
    assert write([ZeroHead("cross", 2, 0), ZeroHead("decoder", 0, 1)]) == "zero-cross.3.1_zero-decoder.1.2"
    assert (write([]), parse("")) == ("", ())


PARTS = st.sampled_from(["zero", "-", "cross", "decoder", ".", "1", "3", "0", "_", "999999", "٣", " ", "\n", "é", ""])


@given(st.text(max_size=30) | st.lists(PARTS, max_size=9).map("".join))
def test_any_other_text_is_refused_in_one_sentence(text):
    try:
        found = parse(text)
    except QueryError as error:
        refusal = str(error)
    else:
        assert write(found) == text
        return
    assert "\n" not in refusal
    assert len(refusal) < 300


NEARLY = ["zero-cross.0.1", "zero-cross.01.1", "zero-cross.65.1", "zero-self.1.1", "_", "zero-cross.1",
          "zero-cross.1.1_", "ZERO-cross.1.1", "zero-cross.1.20000"]  # fmt: skip
WRONG = [("self", 0, 0), (None, 0, 0), ("cross", -1, 0), ("cross", 64, 0), ("cross", 0, -1), ("cross", True, 0),
         ("cross", 0, 1.0), ("cross", "1", 0), ([], 0, 0)]  # fmt: skip


@pytest.mark.parametrize("text", NEARLY)
def test_text_that_is_nearly_right_is_refused(text):
    with pytest.raises(QueryError):
        parse(text)
    with pytest.raises(QueryError, match="65 interventions were requested; the limit is 64"):
        parse("_".join(f"zero-cross.1.{head}" for head in range(1, MAX_INTERVENTIONS + 2)))


def test_the_same_change_twice_contradicts_itself():
    with pytest.raises(QueryError, match=r"zero-cross\.1\.1 is already made"):
        parse("zero-cross.1.1_zero-cross.1.2_zero-cross.1.1")


@pytest.mark.parametrize("text", ["zero-cross.99.1", "zero-cross.65.1", "zero-cross.1.20000"])
def test_a_refused_address_counts_from_1_as_it_does(text):
    with pytest.raises(QueryError) as refused:
        parse(text)
    assert text in str(refused.value)
    assert "from 1 to 64" in str(refused.value) or "from 1 to 16,384" in str(refused.value)
    assert "98" not in str(refused.value)


@pytest.mark.parametrize("values", WRONG)
def test_wrong_values_are_refused(values):
    with pytest.raises(QueryError, match=r"found .*, expected"):
        ZeroHead(*values)


def test_json_written_before_there_were_any_still_opens(checkpoint):
    query = checkpoint.query(SOURCE)
    assert "interventions" not in json.loads(query.to_json())
    changed = replace(query, interventions=[ZeroHead("cross", 1, 0)])
    assert json.loads(changed.to_json())["interventions"] == [
        {"attention": "cross", "change": "zero", "head": 0, "layer": 1}
    ]
    assert changed != query


@pytest.mark.parametrize("wrong", [3, "x", [3], [{}], [{"change": "zero"}], {"a": 1}, [None], [["zero"]],
                                   [{"change": "one", "attention": "cross", "layer": 0, "head": 0}],
                                   [{"change": "zero", "attention": "cross", "layer": "0", "head": 0}]])  # fmt: skip
def test_json_that_is_no_intervention_is_refused(checkpoint, wrong):
    record = json.loads(checkpoint.query(SOURCE).to_json()) | {"interventions": wrong}
    with pytest.raises(QueryError):
        Query.from_json(json.dumps(record))
    with pytest.raises(QueryError):
        checkpoint.query(SOURCE, interventions=wrong)


def test_an_intervention_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        ZeroHead("cross", 0, 0).layer = 1


# On a model


@pytest.mark.parametrize(
    ("intervention", "said"),
    [
        (ZeroHead("cross", 8, 0), "zero-cross.9.1 names layer 9, but this part of the model has only layers 1 to 2"),
        (ZeroHead("encoder", 0, 4), "zero-encoder.1.5 names head 5, but this model has only heads 1 to 4"),
    ],
)
def test_what_the_model_does_not_have_is_refused_when_it_is_run(checkpoint, intervention, said):
    with pytest.raises(QueryError, match=said):
        run(checkpoint, checkpoint.query(SOURCE, interventions=(intervention,)))


def test_a_decoder_alone_has_no_cross_attention_to_change(tmp_path):
    checkpoint = alone("decoder", tmp_path)
    with pytest.raises(QueryError, match="no cross-attention"):
        run(checkpoint, checkpoint.query("the", interventions=(ZeroHead("cross", 0, 0),)))
    changed = run(checkpoint, checkpoint.query("the", interventions=(ZeroHead("decoder", 0, 0),), forced=(9, 5, 7)))
    plain = run(checkpoint, checkpoint.query("the", forced=(9, 5, 7)))
    assert np.abs(changed.log_probs[:3] - plain.log_probs[:3]).max() > 1e-3


def without_head(checkpoint, kind, layer, head):
    """The same model with the columns of W_O that read one head set to 0: what the change amounts to."""
    model = load(checkpoint.folder).model
    d_head = checkpoint.config.d_head
    model.attentions(kind)[layer].out_proj.weight[:, head * d_head : (head + 1) * d_head] = 0.0
    return replace(checkpoint, model=model)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("decoding", DECODINGS, ids=lambda d: type(d).__name__)
def test_a_head_set_to_0_is_a_model_whose_w_o_does_not_read_it(checkpoint, kind, decoding):
    query = checkpoint.query(SOURCE, decoding=decoding, max_new=9)
    changed = run(checkpoint, replace(query, interventions=(ZeroHead(kind, 1, 2),)))
    expected = run(without_head(checkpoint, kind, 1, 2), query)
    assert changed.tgt_ids == expected.tgt_ids
    assert [h.ids for h in changed.hypotheses] == [h.ids for h in expected.hypotheses]
    np.testing.assert_allclose(changed.log_probs, expected.log_probs, atol=1e-4)
    for one in KINDS:
        np.testing.assert_allclose(changed.maps(one), expected.maps(one), atol=1e-5)


def test_the_output_changes_and_comes_back(checkpoint):
    query = checkpoint.query(SOURCE, max_new=12)
    plain = run(checkpoint, query)
    heads = tuple(ZeroHead(kind, layer, head) for kind in KINDS for layer in range(2) for head in range(4))
    changed = run(checkpoint, replace(query, interventions=parse(write(heads))))
    assert changed.tgt_ids != plain.tgt_ids
    assert run(checkpoint, replace(changed.query, interventions=())) == plain


def test_a_replay_is_of_the_changed_run(checkpoint):
    query = checkpoint.query(SOURCE, max_new=6, interventions=(ZeroHead("cross", 0, 3),))
    trace = run(checkpoint, query)
    found = replay(checkpoint, trace, ["decoder.*.cross_attn.heads", "logits", "*.weights"])
    assert (found["decoder.0.cross_attn.heads"][3] == 0).all()
    assert (found["decoder.1.cross_attn.heads"][3] != 0).any()
    np.testing.assert_allclose(torch.tensor(found["logits"]).log_softmax(-1), trace.log_probs, atol=1e-5)
    np.testing.assert_allclose(found["decoder.1.cross_attn.weights"], trace.cross[1], atol=1e-6)


def test_a_batch_shares_its_interventions(checkpoint):
    queries = [checkpoint.query(s, max_new=5, interventions=(ZeroHead("cross", 0, 0),)) for s in (SOURCE, "mi")]
    for query, found in zip(queries, run_batch(checkpoint, queries), strict=True):
        assert found.tgt_ids == run(checkpoint, query).tgt_ids
    with pytest.raises(QueryError, match="same interventions"):
        run_batch(checkpoint, [*queries, checkpoint.query("mi")])


def test_without_interventions_nobody_taps(checkpoint):
    assert tap_for((), checkpoint) is NO_TAP


def test_the_tap_changes_one_site_only(checkpoint):
    config = checkpoint.config
    tap = tap_for([ZeroHead("decoder", 1, 1)], checkpoint)
    assert tap.causal
    wanted = [one.site(layer, "heads") for one in anatomy(config).attentions for layer in range(one.n_layers)
              if tap.wants(one.site(layer, "heads"))]  # fmt: skip
    assert wanted == ["decoder.1.self_attn.heads"]
    assert not tap.wants("decoder.1.self_attn.weights")
    assert tap_of(Recorder()).causal
