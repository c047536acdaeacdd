"""On a decoder alone and on an encoder alone every page shows what there is, and says of the rest why not."""

import numpy as np
import pytest

from glassformer.attention import one_weight_panel
from glassformer.attention.map_pictures import FLOW
from glassformer.inside import ffn_panel, stream_pictures
from glassformer.positions import position_panels
from glassformer.runs import loading
from glassformer.runs.picture import PAGES, declare_all
from glassformer.state import session
from glassformer.step import step_pictures
from tests.glassformer.unpacking import flow_weights, numbers_of
from tests.pages.conftest import ATTENTION, INSIDE, MASKS, POSITIONS
from tests.pages.reading import (
    address,
    charts_of,
    choose,
    everything,
    figure,
    go_to,
    numbers,
    opened,
    payload,
    run_of,
    sentences,
    step,
    told,
    told_or_noted,
    view,
    z_of,
)
from transformer.runs.running import replay, run_batch

declare_all()

TEXT, OTHER = "ba lo mi", "lo"
both = pytest.mark.parametrize("stack", ["decoder", "encoder"])


def run(stack):
    """The checkpoint of a page, and the run that it shows."""
    checkpoint = opened(f"{stack} alone")
    return checkpoint, loading.runner().trace(checkpoint, checkpoint.query(TEXT))


def test_a_decoder_alone_reads_its_prompt_and_is_shaded_by_the_rows_of_the_steps(open_one_stack):
    test, (_, trace) = open_one_stack("decoder", step=2, layer=1, head=2), run("decoder")
    shown, n_prompt = run_of(test), len(trace.src_tokens)
    assert test.text_input(key=session.SOURCE).label == "Prompt"
    assert step(test) == 2
    assert [chip["piece"] for chip in shown["source"]] == list(trace.src_tokens)
    assert [chip["piece"] for chip in shown["target"]] == list(trace.tgt_tokens)
    assert shown["start_piece"] == trace.src_tokens[-1]
    shading = numbers_of(shown["shading"]).reshape(trace.n_steps, n_prompt)
    np.testing.assert_allclose(shading, trace.decoder_self[0, 1, trace.first_row :, :n_prompt], atol=1e-5)
    key = step_pictures.cross_map.key
    expected = np.where(trace.decoder_mask, trace.decoder_self[0, 1], np.nan)
    np.testing.assert_allclose(z_of(test, key), expected, atol=1e-5)
    rows = [trace.row_of(t) for t in range(trace.n_steps)]
    assert figure(test, key)["layout"]["meta"]["follow"]["rows"] == rows


# ---------------------------------------------------------------- attention


@both
@pytest.mark.parametrize("panel", ["overview", "head", "flow", "walk", "table"])
def test_every_part_opens_with_the_attention_that_there_is(open_one_stack, stack, panel):
    test = open_one_stack(stack, ATTENTION, panel=panel, layer=2, head=3, guess=1, words=1, hide=1)
    assert len(test.selectbox(key="kind").options) == 1
    assert not test.error
    assert "was requested" not in sentences(test)


@pytest.mark.parametrize(("stack", "asked"), [("decoder", "encoder"), ("encoder", "decoder")])
def test_one_map_is_the_traces_and_its_rows_are_those_that_read(open_one_stack, stack, asked):
    test, (_, trace) = open_one_stack(stack, ATTENTION, panel="head", kind=asked, layer=2, head=2), run(stack)
    assert f"{asked.capitalize()} self-attention was requested, but does not exist here." in sentences(test)
    maps, allowed = trace.maps(stack)[1], trace.mask(stack)
    np.testing.assert_allclose(z_of(test, "head_map"), np.where(allowed, maps[1], np.nan), atol=1e-6)
    assert ("the key comes later" in everything(test)) == (stack == "decoder")
    meta = figure(test, "head_map")["layout"]["meta"]
    rows = [row.split("<b>")[1].removesuffix("</b>") for row in meta["cells"]["rows"]]
    assert rows[1] == trace.src_tokens[1]  # a piece of the prompt predicts nothing that was written
    steps = [trace.row_of(step) for step in range(trace.n_steps)] if stack == "decoder" else []
    assert meta["follow"]["rows"] == steps
    assert not steps or rows[trace.first_row] == f"{trace.src_tokens[-1]} → {trace.tgt_tokens[0]}"
    data = payload(open_one_stack(stack, ATTENTION, panel="flow", layer=2), FLOW)
    received = flow_weights(data, *allowed.shape)
    np.testing.assert_allclose(received[:, allowed], maps[:, allowed], atol=1e-5)
    assert (data["row_of_step"], data["kind"]) == (steps, f"{stack.capitalize()} self-attention")


def test_one_weight_follows_the_step_of_a_decoder_alone_and_begins_an_encoders_first_row(open_one_stack):
    walk = {"panel": "walk", "layer": 1, "head": 1}
    test, (_, trace) = open_one_stack("decoder", ATTENTION, step=2, **walk), run("decoder")
    options = test.selectbox(key=one_weight_panel.QUERY_CHOICE).options
    assert options[0] == f"The current step ({trace.row_of(1) + 1}: {trace.row_label(trace.row_of(1))})"
    assert len(options) == 1 + len(trace.row_labels())
    go_to(test, 3)
    assert str(trace.row_label(trace.row_of(2))) in told_or_noted(test).replace("\u2060", "")
    test = open_one_stack("encoder", ATTENTION, **walk)
    assert test.selectbox(key=one_weight_panel.QUERY_CHOICE).value == 0


# ---------------------------------------------------------------- inside


@both
@pytest.mark.parametrize("part", ["model", "stream", "lens", "ffn", "pieces"])
def test_every_part_shows_what_there_is(open_one_stack, stack, part):
    test = open_one_stack(stack, INSIDE, inside=part)
    drawn = set(PAGES["inside"].parts[part].pictures)
    if stack == "encoder":
        drawn = set() if part == "lens" else drawn - {"ffn_effect"}
        assert part != "lens" or "so it has no logit lens" in sentences(test)
    assert charts_of(test) == drawn
    assert not test.error


def test_a_token_of_the_prompt_is_looked_at_without_a_step(open_one_stack):
    test, (checkpoint, trace) = open_one_stack("decoder", INSIDE, inside="stream", step=2), run("decoder")
    assert test.selectbox(key="stream_token").index == 0
    choose(test, "stream_token", 1)
    assert (step(test), view(test).query, address(test)["query"]) == (2, 1, "2")
    site = "decoder.embedding.output"
    found = replay(checkpoint, trace, [site])[site].astype(float)
    before = numbers(figure(test, stream_pictures.added.key)["data"][0]["y"])
    np.testing.assert_allclose(before[0], np.sqrt((found[1] ** 2).mean()), rtol=1e-4)
    choose(test, "stream_token", trace.row_of(2))
    assert (step(test), view(test).query) == (3, None)
    test = open_one_stack("decoder", INSIDE, inside="ffn", query=1)
    assert test.selectbox(key=ffn_panel.TOKEN).value == 0
    assert "At this token of the prompt" in told(test)  # its neuron changes no piece of the output


@pytest.mark.parametrize(("page", "part"), [(INSIDE, "stream"), (INSIDE, "pieces"), (POSITIONS, "")])
def test_a_side_that_there_is_not_is_said_and_not_drawn(open_one_stack, page, part):
    test = open_one_stack("encoder", page, side="target", **({"inside": part} if part else {}))
    assert "this model has no decoder" in sentences(test)
    assert "Target" not in str([one.options for one in test.segmented_control if one.key == "side"])


# ---------------------------------------------------------------- positions and masks


@both
def test_the_only_table_is_drawn_and_the_typed_sentence_is_what_the_stack_reads(open_one_stack, stack):
    test, (checkpoint, trace) = open_one_stack(stack, POSITIONS, apart=0), run(stack)
    table = getattr(checkpoint.model, stack).embedding.positions.table.detach().numpy()
    np.testing.assert_array_equal(z_of(test, "position_table"), table)
    assert "Encoder and decoder have" not in told_or_noted(test)
    test = open_one_stack(stack, POSITIONS, positions="sentence")
    assert len(test.selectbox(key=position_panels.TOKEN).options) == trace.n_tokens(stack)


@pytest.mark.parametrize(
    ("stack", "name"), [("decoder", "target"), ("decoder", "causal"), ("decoder", "decoder"), ("encoder", "cross")]
)
def test_masks_cover_prompt_and_output_or_the_padding_of_an_encoder(open_one_stack, stack, name):
    test, checkpoint = open_one_stack(stack, MASKS, mask=name, sentence=2, **{"with": OTHER}), opened(f"{stack} alone")
    trace = run_batch(checkpoint, [checkpoint.query(text) for text in (TEXT, OTHER)])[1]
    n, n_real = len(trace.read_ids if stack == "decoder" else trace.src_ids), trace.n_tokens(stack)
    query, key = np.indices((n, n))
    expected = {"causal": key <= query, "decoder": (key < n_real) & (key <= query)}.get(name, key < n_real)
    np.testing.assert_array_equal(np.isfinite(z_of(test, "mask_bool")), expected)
    assert name == "target" or not expected.all()
    falls = "The mask “Cross-attention” was chosen, but this model does not use it. “Source padding” is shown instead."
    assert (falls in sentences(test)) == (name == "cross")


def test_each_stack_is_checked_for_what_it_masks(open_one_stack):
    assert len(open_one_stack("decoder", MASKS, masks="checks", max=5).success) == 2
    test = open_one_stack("encoder", MASKS, masks="checks")
    assert "This encoder-only model has no causal mask" in sentences(test)
    assert len(test.success) == 1
