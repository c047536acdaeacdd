"""The Positions and the Masks page on a decoder alone and on an encoder alone."""

import numpy as np
import pytest

from glassformer.masks import mask_pictures
from glassformer.positions.sentence import sentence_panel
from glassformer.runs import loading
from tests.pages.conftest import ROOT
from tests.pages.reading import address, everything, figure, numbers, payload, sentences, told_or_noted
from transformer.runs.replay import replay
from transformer.runs.running import run_batch

POSITIONS, MASKS = (ROOT / "pages" / "explore" / f"{page}.py" for page in ("positions", "masks"))
SOURCE, OTHER = "ba lo mi", "lo"
STACKS = ["decoder", "encoder"]


def opened(stack):
    return loading.open_checkpoint(loading.usable()[f"{stack} alone"])


@pytest.fixture
def batch():
    """A function that runs the batch of the page here: `batch(checkpoint)`."""
    return lambda checkpoint: run_batch(checkpoint, [checkpoint.query(text) for text in (SOURCE, OTHER)])


def controls(test):
    return {control.key for control in test.button_group}


def options(test, key):
    return list(test.selectbox(key=key).options)


def open_cells(drawn):
    return np.isfinite(numbers(drawn["data"][0]["z"]))


# ------------------------------------------------------------------------------------------------ positions


@pytest.mark.parametrize("stack", STACKS)
def test_the_only_table_is_drawn(open_one_stack, stack):
    test = open_one_stack(stack, POSITIONS, apart=0)
    table = getattr(opened(stack).model, stack).embedding.positions.table.detach().numpy()
    np.testing.assert_array_equal(numbers(figure(test, "position_table")["data"][0]["z"]), table)
    assert f"The model has no other table of positions, because it is {stack}-only." in told_or_noted(test)
    assert "side" not in controls(test)
    assert "was requested" not in sentences(test)


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize(("part", "chart"), [("similarity", "position_similarity"), ("shift", "position_errors")])
def test_its_positions_are_compared_and_shifted(open_one_stack, stack, part, chart):
    assert figure(open_one_stack(stack, POSITIONS, positions=part), chart)["data"]


@pytest.mark.parametrize("stack", STACKS)
def test_the_typed_sentence_is_what_the_stack_reads(open_one_stack, stack):
    test, checkpoint = open_one_stack(stack, POSITIONS, positions="sentence"), opened(stack)
    trace = loading.runner().trace(checkpoint, checkpoint.query(SOURCE))
    values = replay(checkpoint, trace, [f"{stack}.embedding.*"])
    bars = figure(test, "embedding_strengths")["data"]
    expected = [values[f"{stack}.embedding.{name}"] for name in ("tokens", "positions", "output")]
    for drawn, vectors in zip(bars[-3:], expected, strict=True):
        np.testing.assert_allclose(numbers(drawn["y"]), np.sqrt((vectors**2).mean(1)), rtol=1e-5)
    read = trace.read_pieces if stack == "decoder" else trace.src_pieces
    assert len(test.selectbox(key=sentence_panel.TOKEN).options) == len(read) == trace.n_tokens(stack)


def test_guessing_shows_the_prompt_and_nothing_of_what_comes(open_one_stack):
    test, checkpoint = open_one_stack("decoder", POSITIONS, positions="sentence", guess=1), opened("decoder")
    trace = loading.runner().trace(checkpoint, checkpoint.query(SOURCE))
    assert len(test.selectbox(key=sentence_panel.TOKEN).options) == trace.first_row + 1


def test_a_side_that_there_is_not_is_said(open_one_stack):
    assert "this model has no decoder" in sentences(open_one_stack("encoder", POSITIONS, side="target"))


# ---------------------------------------------------------------------------------------------------- masks


@pytest.mark.parametrize("name", ["target", "causal", "decoder"])
def test_masks_of_a_decoder_alone_cover_prompt_and_output(open_one_stack, batch, name):
    test, checkpoint = open_one_stack("decoder", MASKS, mask=name, sentence=2, **{"with": OTHER}), opened("decoder")
    traces = batch(checkpoint)
    n, n_real = len(traces[1].read_ids), traces[1].n_tokens("decoder")
    query, key = np.indices((n, n))
    expected = {"target": key < n_real, "causal": key <= query, "decoder": (key < n_real) & (key <= query)}[name]
    np.testing.assert_array_equal(open_cells(figure(test, "mask_bool")), expected)
    lengths = [trace.n_tokens("decoder") for trace in traces]
    assert (
        f"Lengths of prompt and output together: {lengths[0]} and {lengths[1]} tokens, all padded to {max(lengths)}."
        in told_or_noted(test)
    )


def test_the_mask_of_an_encoder_alone_closes_padding(open_one_stack, batch):
    test, checkpoint = open_one_stack("encoder", MASKS, sentence=2, **{"with": OTHER}), opened("encoder")
    traces = batch(checkpoint)
    real = np.array(traces[1].src_ids) != checkpoint.config.pad_id
    np.testing.assert_array_equal(open_cells(figure(test, "mask_bool")), np.broadcast_to(real, (len(real),) * 2))
    assert not real.all()
    assert "Target lengths" not in told_or_noted(test)


@pytest.mark.parametrize("stack", STACKS)
def test_a_mask_that_there_is_not_falls_to_one_that_there_is(open_one_stack, stack):
    test = open_one_stack(stack, MASKS, mask="cross")
    shown = "Padding and causal" if stack == "decoder" else "Source padding"
    assert (
        f"The mask “Cross-attention” was chosen, but this model does not use it. “{shown}” is shown instead."
        in sentences(test)
    )
    assert address(test)["mask"] == "cross"


def test_a_prompt_has_no_start_piece(open_one_stack):
    said = told_or_noted(open_one_stack("decoder", MASKS, mask="decoder", query=1, key=1))
    assert "Yes: key 1 and query 1 have the same position, and the key is not padding." in said


@pytest.mark.parametrize("stack", STACKS)
def test_one_row_is_that_of_the_run(open_one_stack, batch, stack):
    test, checkpoint = (
        open_one_stack(stack, MASKS, masks="one_row", sentence=2, layer=2, head=2, query=2, **{"with": OTHER}),
        opened(stack),
    )
    weights = batch(checkpoint)[1].maps(stack)[1, 1, 1]
    rows = figure(test, "mask_row")["layout"]["meta"]["table"]["rows"]
    np.testing.assert_allclose([row[4] or 0.0 for row in rows], weights, atol=5e-6)


def test_the_past_of_a_decoder_alone_stays_when_a_later_piece_changes(open_one_stack):
    test, checkpoint = open_one_stack("decoder", MASKS, masks="checks", max=5), opened("decoder")
    trace = loading.runner().trace(checkpoint, checkpoint.query(SOURCE, max_new=5))
    drawn = figure(test, mask_pictures.causality.key)
    moved = np.array([row[2] for row in drawn["layout"]["meta"]["table"]["rows"]])
    place = test.selectbox(key="mask_changed").value
    assert len(moved) == trace.n_tokens("decoder")
    assert (moved[:place] == 0).all()
    assert moved[place] > 1e-3
    assert len(test.success) == 2
    assert not [one.key for one in test.get("bidi_component") if one.key == mask_pictures.source_pads.key]
    assert payload(test, mask_pictures.target_pads.key)["alt"]


def test_a_piece_of_the_prompt_can_be_changed(open_one_stack):
    test = open_one_stack("decoder", MASKS, masks="checks", changed=2, max=5)
    assert test.selectbox(key="mask_changed").value == 1
    assert len(test.success) == 2


def test_guessing_shows_only_the_prompt_and_what_was_written(open_one_stack, batch):
    traces = batch(opened("decoder"))
    n_rows, best = traces[0].first_row + 1, traces[0].vocabulary[int(traces[0].log_probs[0].argmax())]
    test = open_one_stack("decoder", MASKS, mask="decoder", guess=1, **{"with": OTHER})
    assert open_cells(figure(test, "mask_bool")).shape == (n_rows, n_rows)
    assert f"→ {best}" not in everything(test)
    asked = open_one_stack("decoder", MASKS, masks="checks", changed=2, guess=1, max=5)
    assert f"and “{best}” in the second" not in sentences(asked)
    assert "Guess mode" not in sentences(open_one_stack("encoder", MASKS, guess=1))


def test_no_pad_fits_after_a_prompt_and_an_output_that_fill_the_model(open_one_stack):
    assert "the prompt and output already have that many" in sentences(open_one_stack("decoder", MASKS, masks="checks"))


def test_an_encoder_alone_is_checked_for_padding_and_has_no_causality(open_one_stack):
    test, checkpoint = open_one_stack("encoder", MASKS, masks="checks"), opened("encoder")
    trace = loading.runner().trace(checkpoint, checkpoint.query(SOURCE))
    assert "This encoder-only model has no causal mask" in sentences(test)
    drawn = figure(test, mask_pictures.source_pads.key)
    assert len(drawn["layout"]["meta"]["table"]["rows"]) == len(trace.src_ids)
    assert "Δ component" in drawn["layout"]["yaxis"]["title"]["text"]
    assert "logit" not in everything(test)
    assert len(test.success) == 1
