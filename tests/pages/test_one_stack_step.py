"""The frame of every page and the Step page on a decoder alone and on an encoder alone."""

import numpy as np
import pytest

from glassformer.runs import loading
from glassformer.state import session
from glassformer.step import step_pictures
from tests.glassformer.unpacking import numbers_of
from tests.pages.reading import figure, numbers, opened, payload, run_of, sentences, step

PROMPT = "ba lo mi"


def trace_of(stack):
    checkpoint = opened(f"{stack} alone")
    return loading.runner().trace(checkpoint, checkpoint.query(PROMPT))


def texts(test):
    return "\n".join(element.value for element in (*test.info, *test.caption, *test.markdown))


WRITES_NOTHING = (
    "This encoder-only model generates no output, so there are no steps. The Attention page shows how it reads text."
)


def test_a_decoder_alone_reads_its_prompt(open_one_stack):
    test, trace = open_one_stack("decoder", step=2), trace_of("decoder")
    assert test.text_input(key=session.SOURCE).label == "Prompt"
    assert step(test) == 2
    run = run_of(test)
    assert [chip["piece"] for chip in run["source"]] == list(trace.src_pieces)
    assert [chip["piece"] for chip in run["target"]] == list(trace.tgt_pieces)
    assert run["start_piece"] == trace.src_pieces[-1]
    assert run["shading_label"] == "Prompt shaded by self-attention, mean of all 3 layers × 3 heads"


def test_a_prompt_is_shaded_by_the_rows_of_the_steps(open_one_stack):
    test, trace = open_one_stack("decoder", layer=1, head=2), trace_of("decoder")
    shading = numbers_of(run_of(test)["shading"]).reshape(trace.n_steps, len(trace.src_pieces))
    expected = trace.decoder_self[0, 1, trace.first_row :, : len(trace.src_pieces)]
    np.testing.assert_allclose(shading, expected, atol=1e-5)


def test_a_decoder_alone_shows_its_self_attention(open_one_stack):
    test, trace = open_one_stack("decoder", step=2, layer=2, head=1), trace_of("decoder")
    drawn = figure(test, step_pictures.cross_map.key)
    cells = numbers(drawn["data"][0]["z"])
    seen = np.isfinite(cells)
    np.testing.assert_array_equal(seen, trace.decoder_mask)
    np.testing.assert_allclose(cells[seen], trace.decoder_self[1, 0][seen], atol=1e-5)
    assert drawn["layout"]["meta"]["follow"]["rows"] == [trace.row_of(t) for t in range(trace.n_steps)]
    entropies = numbers(figure(test, step_pictures.entropy.key)["data"][0]["y"])
    np.testing.assert_allclose(entropies, trace.entropies(), atol=1e-5)


def test_an_encoder_alone_says_that_it_writes_nothing(open_one_stack):
    test = open_one_stack("encoder")
    assert WRITES_NOTHING in texts(test)
    run = run_of(test)
    assert run["target"] == []
    assert run["shading"] is None
    assert [chip["piece"] for chip in run["source"]] == list(trace_of("encoder").src_pieces)
    assert run["stop_reason"] == "This is an encoder-only model: it reads text but does not write any."
    assert not test.sidebar.slider
    assert not test.sidebar.toggle


def test_a_step_of_an_encoder_alone_is_said_to_be_missing(open_one_stack):
    assert "Step 5 was requested, but this model does not write any output" in sentences(
        open_one_stack("encoder", step=5)
    )


@pytest.mark.parametrize("stack", ["decoder", "encoder"])
def test_guessing_hides_what_there_is(open_one_stack, stack):
    test = open_one_stack(stack, guess=1)
    assert payload(test, session.STEPPER)["step"] == 0
