"""The Attention page on a decoder alone and on an encoder alone: every part, against the trace and the parameters."""

import math

import numpy as np
import pytest
import torch

from glassformer.attention.map_pictures import FLOW
from glassformer.attention.one_weight import one_weight_panel as one_weight
from glassformer.runs import loading
from tests.pages.conftest import ATTENTION, check
from tests.pages.reading import everything, figure, go_to, numbers, opened, payload, sentences, told_or_noted
from tests.pages.test_flow import sent
from tests.transformer.one_stack import alone
from transformer.model.taps import Recorder, tap_of

STACKS = ["decoder", "encoder"]
TEXT = "ba lo mi"


@pytest.fixture
def attention(open_one_stack):
    """A function that opens a part of the page: `attention("decoder", "walk", layer=1, head=2)`."""
    return lambda stack, panel="overview", **parameters: open_one_stack(stack, ATTENTION, panel=panel, **parameters)


def checkpoint(stack):
    return opened(f"{stack} alone")


def trace_of(stack):
    return loading.runner().trace(checkpoint(stack), checkpoint(stack).query(TEXT))


def recorded(stack):
    """Layer 2 in a pass of its own: what enters the attention, the heads' outputs and what is made of them."""
    trace = trace_of(stack)
    ids = {"src": torch.tensor([trace.src_ids])} if stack == "encoder" else {"tgt": torch.tensor([trace.read_ids])}
    recorder = Recorder((f"{stack}.1.self_attn.*",))
    model = checkpoint(stack).model
    with torch.inference_mode():
        read = model.encode(ids["src"], tap=tap_of(recorder)) if stack == "encoder" else None
        if read is None:
            model(None, ids["tgt"], tap=tap_of(recorder))
    return {name.rsplit(".", 1)[1]: value[0].double().numpy() for name, value in recorder.values.items()}


def by_hand(stack, *, head, query):
    """One row of layer 2, from what enters its attention and the parameters."""
    config, x = checkpoint(stack).config, recorded(stack)["norm"]
    state, name = checkpoint(stack).model.state_dict(), f"{stack}.layers.1.self_attn"

    def projected(part, place):
        mine = slice(place * config.d_head, (place + 1) * config.d_head)
        weight, bias = (state[f"{name}.{part}_proj.{kind}"].double().numpy()[mine] for kind in ("weight", "bias"))
        return x @ weight.T + bias

    group = head // (config.n_heads // config.n_kv_heads)
    q, k, v = projected("q", head)[query], projected("k", group), projected("v", group)
    allowed = trace_of(stack).mask(stack)[query]
    scores = k @ q / math.sqrt(config.d_head)
    exps = np.where(allowed, np.exp(scores), 0)
    out = exps / exps.sum() @ v
    columns = state[f"{name}.out_proj.weight"].double().numpy()[:, head * config.d_head : (head + 1) * config.d_head]
    share = columns @ out
    return {"q": q, "k": k, "v": v, "scores": scores, "weights": exps / exps.sum(), "share": share,
            "allowed": allowed}  # fmt: skip


def bars(test, key, place=0):
    return numbers(figure(test, key)["data"][place]["y"])


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("panel", ["overview", "head", "flow", "walk", "table"])
def test_every_part_opens_with_the_attention_that_there_is(attention, stack, panel):
    test = attention(stack, panel, layer=2, head=3, guess=1, words=1, hide=1)
    (kind,) = [menu for menu in test.selectbox if menu.key == "kind"]
    assert len(kind.options) == 1
    assert not test.error
    assert "was requested" not in sentences(test)


@pytest.mark.parametrize(("stack", "asked"), [("decoder", "encoder"), ("encoder", "decoder")])
def test_an_attention_that_there_is_not_gives_way_with_a_note(attention, stack, asked):
    test = attention(stack, "head", kind=asked, layer=1, head=1)
    assert f"{asked.capitalize()} self-attention was requested, but this model does not have it." in sentences(test)
    assert (
        figure(test, "head_map")["layout"]["title"]["text"] == f"{stack.capitalize()} self-attention: layer 1, head 1"
    )


@pytest.mark.parametrize("stack", STACKS)
def test_all_heads_are_those_of_the_trace(attention, stack):
    test, trace = attention(stack), trace_of(stack)
    drawn = [element.key for element in test.get("bidi_component") if (element.key or "").startswith("overview_")]
    assert drawn == [f"overview_{stack}"]
    grid = figure(test, drawn[0])["layout"]["meta"]["grid"]
    assert len(grid["queries"]) == trace.maps(stack).shape[2]
    follow = figure(test, drawn[0])["layout"]["meta"].get("follow")
    if stack == "encoder":
        assert follow is None
    else:
        assert follow["rows"] == [trace.row_of(step) for step in range(trace.n_steps)]


@pytest.mark.parametrize("stack", STACKS)
def test_one_map_is_the_traces_and_its_rows_are_those_that_read(attention, stack):
    test, trace = attention(stack, "head", layer=2, head=2), trace_of(stack)
    drawn = numbers(figure(test, "head_map")["data"][0]["z"])
    allowed = trace.mask(stack)
    np.testing.assert_allclose(drawn[allowed], trace.maps(stack)[1, 1][allowed], atol=1e-6)
    assert np.isnan(drawn[~allowed]).all()
    assert ("comes later in the text" in everything(test)) == (stack == "decoder")
    assert "comes later in the output" not in everything(test)
    layout = figure(test, "head_map")["layout"]
    rows = [row.split("<b>")[1].removesuffix("</b>") for row in layout["meta"]["cells"]["rows"]]
    assert len(rows) == len(trace.row_labels() or trace.src_pieces)
    assert rows[1] == trace.src_pieces[1]  # a piece of the prompt predicts nothing that was written
    if stack == "decoder":
        assert rows[trace.first_row] == f"{trace.src_pieces[-1]} → {trace.tgt_pieces[0]}"
        assert layout["meta"]["follow"]["rows"] == [trace.row_of(step) for step in range(trace.n_steps)]
    else:
        assert layout["meta"]["follow"]["rows"] == []


def test_words_of_a_prompt_and_of_what_follows_are_not_mixed(attention):
    test, trace = attention("decoder", "head", layer=1, head=1, words=1), trace_of("decoder")
    layout = figure(test, "head_map")["layout"]
    rows = [row.split("<b>")[1].removesuffix("</b>") for row in layout["meta"]["cells"]["rows"]]
    given = [row for row in rows if "→" not in row]
    followed = layout["meta"]["follow"]["rows"]
    assert given
    assert followed[0] == len(given)
    assert len(followed) == trace.n_steps
    assert followed[-1] == len(rows) - 1


@pytest.mark.parametrize("stack", STACKS)
def test_rollout_says_what_it_multiplied(attention, stack):
    test, trace = attention(stack, "head", together="rollout"), trace_of(stack)
    mixed = np.eye(trace.maps(stack).shape[-1])
    for layer in trace.maps(stack).astype(np.float64):
        mixed = (layer.mean(axis=0) / 2 + np.eye(len(mixed)) / 2) @ mixed
    drawn, allowed = numbers(figure(test, "head_map")["data"][0]["z"]), trace.mask(stack)
    np.testing.assert_allclose(drawn[allowed], mixed[allowed], atol=1e-5)
    assert "cross-attention" not in payload(test, "head_map")["caption"]


@pytest.mark.parametrize("stack", STACKS)
def test_the_flow_has_every_row(attention, stack):
    test, trace = attention(stack, "flow", layer=2), trace_of(stack)
    data, received = sent(test)
    allowed = trace.mask(stack)
    np.testing.assert_allclose(received[:, allowed], trace.maps(stack)[1][:, allowed], atol=1e-5)
    steps = [] if stack == "encoder" else [trace.row_of(step) for step in range(trace.n_steps)]
    assert data["row_of_step"] == steps
    assert payload(test, FLOW)["kind"] == f"{stack.capitalize()} self-attention"


@pytest.mark.parametrize(("stack", "head", "query", "key"), [
    ("decoder", 0, 4, 1), ("decoder", 2, 1, 3), ("encoder", 2, 1, 3), ("encoder", 0, 0, 0),
])  # fmt: skip
def test_one_weight_has_the_numbers_of_the_parameters(attention, stack, head, query, key):
    test = attention(stack, "walk", layer=2, head=head + 1, query=query + 1, key=key + 1)
    found, config = by_hand(stack, head=head, query=query), checkpoint(stack).config
    allowed = found["allowed"]
    strips = figure(test, "walk_products")["data"][0]
    np.testing.assert_allclose(numbers(strips["z"]), [found["q"], found["k"][key]], atol=1e-5)
    assert len(found["q"]) == config.d_head
    scores = bars(test, "walk_scores", 1)
    np.testing.assert_allclose(scores, found["scores"], atol=1e-5)
    weights = bars(test, "walk_weights")
    np.testing.assert_allclose(weights[allowed], found["weights"][allowed], atol=1e-5)
    np.testing.assert_allclose(weights[allowed], trace_of(stack).maps(stack)[1, head, query][allowed], atol=1e-5)
    assert np.isnan(weights[~allowed]).all()
    share = numbers(figure(test, "walk_share")["data"][0]["z"])
    np.testing.assert_allclose(share[0], found["share"], atol=1e-5)
    np.testing.assert_allclose(share[3], recorded(stack)["output"][query], atol=1e-5)
    assert rf"\sqrt{{{config.d_head}}}" in "\n".join(element.value for element in test.markdown)
    assert f"{config.d_head} numbers each" in told_or_noted(test)


def test_heads_that_share_keys_and_values_are_said(attention):
    shared = "All 3 heads share one key-value head"
    assert shared in told_or_noted(attention("decoder", "walk", layer=1, head=2))
    assert "share one key-value head" not in told_or_noted(attention("encoder", "walk", layer=1, head=2))


def test_groups_of_heads_are_said_and_each_uses_its_own(tmp_path, open_page, monkeypatch):
    model = alone("decoder", tmp_path, n_heads=4, n_kv_heads=2, d_head=3)
    monkeypatch.setenv(loading.ENVIRONMENT, str(tmp_path))
    test = open_page(ATTENTION, model="decoder alone", src=TEXT, panel="walk", layer=1, head=3, query=3)
    shared = "The 4 heads share 2 key-value heads. Here, k and v come from key-value head 2, which heads 3 to 4 use."
    assert shared in told_or_noted(test)
    trace = loading.runner().trace(model, model.query(TEXT))
    weights, allowed = bars(test, "walk_weights"), trace.decoder_mask[2]
    np.testing.assert_allclose(weights[allowed], trace.decoder_self[0, 2, 2][allowed], atol=1e-5)


@pytest.mark.parametrize("stack", STACKS)
def test_vectors_of_all_tokens_are_those_of_the_group(attention, stack):
    test = attention(stack, "walk", layer=2, head=3)
    test.session_state[one_weight.VECTORS] = True
    check(test.run())
    found = by_hand(stack, head=2, query=1)
    for key, name in zip(("walk_all_q", "walk_all_k", "walk_all_v"), "qkv", strict=True):
        drawn = numbers(figure(test, key)["data"][0]["z"])
        np.testing.assert_allclose(drawn[1] if name == "q" else drawn, found[name], atol=1e-5)


def test_one_weight_follows_the_step_of_a_decoder_alone(attention):
    test, trace = attention("decoder", "walk", layer=1, head=1, step=2), trace_of("decoder")
    options = test.selectbox(key=one_weight.QUERY_CHOICE).options
    assert options[0] == f"The current step ({trace.row_of(1) + 1}: {trace.row_label(trace.row_of(1))})"
    assert len(options) == 1 + len(trace.row_labels())
    check(go_to(test, 3))
    assert str(trace.row_label(trace.row_of(2))) in told_or_noted(test).replace("\u2060", "")
    assert "q, k and v all come from the prompt and the output so far." in told_or_noted(test)


def test_an_encoder_alone_begins_with_its_first_row(attention):
    test = attention("encoder", "walk", layer=1, head=1)
    assert test.selectbox(key=one_weight.QUERY_CHOICE).value == 0
    assert "q, k and v all come from the source." in told_or_noted(test)


@pytest.mark.parametrize("stack", STACKS)
def test_what_heads_do_is_what_the_weights_say(attention, stack):
    test, trace = attention(stack, "table", layer=2, head=1, measure="largest"), trace_of(stack)
    found, weights = test.dataframe[0].value, trace.maps(stack).astype(np.float64)  # [layer, head, query, key]
    assert found["open"].tolist() == [
        f"{'● ' * ((layer, head) == (2, 1))}Layer {layer}, head {head}"
        for layer in range(1, len(weights) + 1)
        for head in (1, 2, 3)
    ]
    np.testing.assert_allclose(found["largest"], weights.max(-1).mean(-1).ravel(), atol=1e-4)
    np.testing.assert_allclose(found["first"], weights[..., 0].mean(-1).ravel(), atol=1e-4)
    config, heads = checkpoint(stack).config, recorded(stack)["heads"]  # [head, query, d_head]
    matrix = checkpoint(stack).model.state_dict()[f"{stack}.layers.1.self_attn.out_proj.weight"].double().numpy()
    columns = matrix.reshape(config.d_model, config.n_heads, config.d_head)
    norms = np.linalg.norm(np.einsum("hqd,mhd->hqm", heads, columns), axis=-1)
    np.testing.assert_allclose(found["norm_share"][3:6], (norms / norms.sum(axis=0)).mean(axis=1), atol=1e-4)
    rows = bars(test, "head_table_rows")
    np.testing.assert_allclose(rows, weights[1, 0].max(-1), atol=1e-5)


def test_a_prompt_is_seen_while_guessing(attention):
    test, trace = attention("decoder", "table", guess=1, step=2), trace_of("decoder")
    assert f"measured over the {trace.first_row + 2} visible rows" in told_or_noted(test)
    rows = figure(attention("decoder", "head", guess=1, step=2), "head_map")["layout"]["meta"]["cells"]["rows"]
    assert len(rows) == trace.first_row + 2
    assert "→ ?" in rows[-1]
