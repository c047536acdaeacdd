"""The Inside page on a decoder alone and on an encoder alone: each part shows what there is, or says why not."""

import numpy as np
import pytest

from glassformer.inside.ffn import ffn_panel as ffn
from glassformer.inside.lens import lens_pictures
from glassformer.inside.pieces import pieces_panel as embeddings_panel
from glassformer.inside.stream import stream_pictures
from glassformer.runs import loading
from glassformer.state import session
from tests.pages.conftest import INSIDE, check
from tests.pages.reading import address, charts_of, figure, go_to, numbers, opened, sentences, step, told, view
from transformer.analysis.logit_lens import logit_lens
from transformer.analysis.stream import measure, sites
from transformer.runs.replay import replay

SOURCE = "ba lo mi"
STACKS = ["decoder", "encoder"]
DRAWN = {
    "model": {"model_diagram", "cost_shares", "cost_curves"},
    "stream": {
        stream_pictures.size.key,
        stream_pictures.kept.key,
        stream_pictures.added.key,
        stream_pictures.norm.key,
        stream_pictures.strip.key,
    },
    "lens": {lens_pictures.table.key, lens_pictures.curves.key, lens_pictures.lens_map.key},
    "ffn": {"ffn_shares", "ffn_histogram", "ffn_active", "ffn_tokens", "ffn_map", "ffn_effect"},
    "pieces": {"piece_neighbours", "piece_map"},
}


@pytest.fixture
def page(open_one_stack):
    """A function that opens a part: `page("decoder", "lens", step=2)`."""
    return lambda stack, part, **parameters: open_one_stack(stack, INSIDE, inside=part, **parameters)


def run_of(stack):
    """The run that the page shows: what it opens by itself."""
    checkpoint = opened(f"{stack} alone")
    new = min(session.DEFAULT_NEW, checkpoint.config.max_len)
    return checkpoint, loading.runner().trace(checkpoint, checkpoint.query(SOURCE, max_new=new))


def blocks(test):
    return {row[0]: row[1:] for row in figure(test, "model_diagram")["layout"]["meta"]["table"]["rows"]}


def rms(vectors):
    return np.sqrt((vectors.astype(float) ** 2).mean(-1))


@pytest.mark.parametrize("part", DRAWN)
@pytest.mark.parametrize("stack", STACKS)
def test_every_part_shows_what_there_is(page, stack, part):
    test = page(stack, part)
    missing = {"lens": DRAWN["lens"], "ffn": {"ffn_effect"}} if stack == "encoder" else {}
    assert charts_of(test) == DRAWN[part] - missing.get(part, set())
    assert not test.error


# ------------------------------------------------------------------------------------------------ the model


@pytest.mark.parametrize("stack", STACKS)
def test_the_diagram_and_the_costs_are_of_one_stack(page, stack):
    test, (checkpoint, trace) = page(stack, "model"), run_of(stack)
    config, found = checkpoint.config, blocks(test)
    other = "Encoder" if stack == "decoder" else "Decoder"
    assert not [name for name in found if other in name or "cross" in name.lower()]
    assert ("Output layer" in found) == ("Logits" in found) == (stack == "decoder")
    total = sum(p.numel() for p in checkpoint.model.parameters())
    assert sum(row[2] or 0 for row in found.values()) == total
    n = trace.n_tokens(stack)
    assert n == (trace.first_row + trace.n_steps if stack == "decoder" else len(trace.src_ids))
    heads, kv, d, width = config.n_heads, config.n_kv_heads, config.d_model, config.d_head
    layers = config.n_encoder_layers + config.n_decoder_layers
    done = layers * (2 * n * d * width * (heads + kv) + 2 * n * n * heads * width + 2 * n * d * config.d_ff)
    done += n * d * config.tgt_vocab_size * (stack == "decoder")
    assert sum(row[3] or 0 for row in found.values()) == done
    side = "target" if stack == "decoder" else "source"
    assert f"One pass over this sentence ({n} {side} tokens) takes {done:,} multiply-adds" in told(test)
    shapes, table = (element.value for element in test.dataframe)
    table = table.set_index("Component")
    assert not [name for name in table.index if other in name or "Cross" in name or "Target" in name]
    assert table["Parameters"]["All"] == total == table["Parameters"].iloc[:-1].sum()
    assert table["Multiply-adds, this sentence"]["All"] == done
    assert "With n tokens, the n² part" in told(test)
    assert ("just above 2·d_model" in told(test)) == (kv == heads)  # fewer keys and values: smaller projections
    assert "no encoder" in told(test) if stack == "decoder" else "no decoder" in told(test)
    last = {"decoder": [n, config.tgt_vocab_size], "encoder": [n, config.d_model]}
    assert shapes["Shape"].iloc[-1] == str(last[stack])


@pytest.mark.parametrize("stack", STACKS)
def test_shapes_are_those_of_the_values(page, stack):
    test, (checkpoint, trace) = page(stack, "model"), run_of(stack)
    values = replay(checkpoint, trace, ["*"])
    table = test.dataframe[0].value
    for site, shape in zip(table["Name in the code"], table["Shape"], strict=True):
        assert site == "—" or shape == str(list(values[site].shape)), site


# ------------------------------------------------------------------------------------------------ stream, lens


@pytest.mark.parametrize("stack", STACKS)
def test_the_stream_is_the_runs_own(page, stack):
    test, (checkpoint, trace) = page(stack, "stream"), run_of(stack)
    recorded = replay(checkpoint, trace, sites(checkpoint.config, stack))
    n = trace.n_tokens(stack)
    token = trace.first_row if stack == "decoder" else 0
    measured = measure(recorded, checkpoint.config, stack, n_tokens=n)
    before, added = (numbers(bars["y"]) for bars in figure(test, stream_pictures.added.key)["data"])
    np.testing.assert_allclose(before, measured.before[:, token], rtol=1e-4)
    np.testing.assert_allclose(added, measured.added[:, token], rtol=1e-4)
    assert len(test.selectbox(key="stream_token").options) == n + (stack == "decoder")  # that of the step


def test_a_token_of_the_prompt_is_looked_at_without_a_step(page):
    test, (checkpoint, trace) = page("decoder", "stream", step=2), run_of("decoder")
    assert test.selectbox(key="stream_token").index == 0
    check(test.selectbox(key="stream_token").set_value(1).run())
    assert step(test) == 2
    assert (view(test).query, address(test)["query"]) == (1, "2")
    assert test.selectbox(key="stream_token").value == 1
    found = replay(checkpoint, trace, ["decoder.embedding.output"])["decoder.embedding.output"]
    before = numbers(figure(test, stream_pictures.added.key)["data"][0]["y"])
    np.testing.assert_allclose(before[0], rms(found[1]), rtol=1e-4)
    check(test.selectbox(key="stream_token").set_value(trace.row_of(2)).run())
    assert (step(test), view(test).query) == (3, None)


def test_the_lens_reads_the_rows_of_the_steps(page):
    test, (checkpoint, trace) = page("decoder", "lens", step=2), run_of("decoder")
    found = logit_lens(checkpoint, trace).by_layer()
    np.testing.assert_allclose(
        numbers(figure(test, lens_pictures.table.key)["data"][0]["z"]), found.top_probs[:, 1], rtol=1e-3
    )
    written = np.exp(trace.log_probs[range(trace.n_steps), trace.tgt_ids])
    np.testing.assert_allclose(found.prob[-1], written, rtol=1e-4)
    title = figure(test, lens_pictures.table.key)["layout"]["title"]["text"]
    assert title.endswith(f"after {trace.read_pieces[trace.row_of(1)]}")
    columns = figure(test, lens_pictures.lens_map.key)["layout"]["meta"]["cells"]["columns"]
    assert len(columns) == trace.n_steps
    assert trace.tgt_pieces[0] in columns[0]


def test_an_encoder_alone_has_no_lens_and_says_so(page):
    test = page("encoder", "lens")
    assert "so it has no logit lens" in sentences(test)


# ------------------------------------------------------------------------------------------------ feed-forward


@pytest.mark.parametrize("stack", STACKS)
def test_activations_are_the_runs_own(page, stack):
    test, (checkpoint, trace) = page(stack, "ffn"), run_of(stack)
    found = replay(checkpoint, trace, [f"{stack}.0.ffn.activation"])[f"{stack}.0.ffn.activation"]
    n, token = trace.n_tokens(stack), trace.first_row if stack == "decoder" else 0
    neuron_ = int(np.argmax(found[token]))
    np.testing.assert_allclose(numbers(figure(test, "ffn_tokens")["data"][0]["y"]), found[:n, neuron_], atol=1e-5)
    assert ("no logits that a neuron could change" in told(test)) == (stack == "encoder")


def test_a_neuron_at_the_prompt_changes_no_piece_of_the_output(page):
    test = page("decoder", "ffn", query=1)
    assert test.selectbox(key=ffn.TOKEN).value == 0
    assert "ffn_effect" in charts_of(test)
    assert "At this token of the prompt" in told(test)
    assert "At this step, the activation" in told(page("decoder", "ffn"))


def test_guessing_hides_what_a_decoder_alone_goes_on_with(page):
    _, trace = run_of("decoder")
    test = page("decoder", "ffn", guess=1, step=2)
    assert numbers(figure(test, "ffn_map")["data"][0]["z"]).shape[0] == trace.row_of(1) + 1
    assert "ffn_effect" not in charts_of(test)
    test = page("decoder", "lens", guess=1, step=3)
    assert len(figure(test, lens_pictures.lens_map.key)["layout"]["meta"]["cells"]["columns"]) == 2
    assert "What comes next?" in sentences(test)


# ------------------------------------------------------------------------------------------------ embeddings


@pytest.mark.parametrize("stack", STACKS)
def test_there_is_one_table(page, stack):
    test, (checkpoint, trace) = page(stack, "pieces"), run_of(stack)
    rows, width = checkpoint.model.src_table.shape
    assert f"This model has one embedding table of {rows:,} pieces × {width} numbers" in told(test)
    assert ("output layer uses the same table" in told(test)) == (stack == "decoder")
    ids = trace.read_ids if stack == "decoder" else trace.src_ids
    token = trace.first_row if stack == "decoder" else 0
    assert test.selectbox(key=embeddings_panel.TOKEN).index == 0
    table = checkpoint.model.src_table.detach().numpy().astype(float)
    length = np.linalg.norm(table[ids[token]])
    assert f"has length {length:.3f}" in told(test)
    where = {row[1]: row[2] for row in figure(test, "piece_map")["layout"]["meta"]["table"]["rows"]}
    assert ("output" in where.values() or "both" in where.values()) == (stack == "decoder")


# ------------------------------------------------------------------------------------------------ what there is not


def test_a_side_that_there_is_not_is_said_and_not_drawn(page):
    for part in ("stream", "ffn", "pieces"):
        test = page("encoder", part, side="target")
        assert "this model has no decoder" in sentences(test)
        assert next(c for c in test.segmented_control if c.key == "side").options == ["Source"]
    assert next(c for c in page("decoder", "stream").segmented_control if c.key == "side").options == ["Target"]
    added, label = figure(go_to(page("decoder", "stream"), 2), stream_pictures.added.key), run_of("decoder")[1]
    assert str(label.row_label(label.row_of(1)).reads) in added["layout"]["title"]["text"]
