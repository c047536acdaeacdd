"""The part "The model" of the Inside page: its numbers are made again from the checkpoint."""

import gc
import itertools
from copy import deepcopy
from urllib.parse import parse_qs
from weakref import ref

import numpy as np
import pytest
import torch

from glassformer import charts
from glassformer.inside.features import in_words
from glassformer.inside.model import blocks as model_blocks
from glassformer.inside.model import model_panel as inside_model_panels
from glassformer.inside.model import model_pictures
from glassformer.inside.model import shapes as shape_panels
from glassformer.inside.model.blocks import (
    blocks_of,
    contents,
    destination,
    each_layer,
    few_layers,
    one_layer,
    sized,
    stacks,
)
from glassformer.runs import loading
from tests.pages.conftest import INSIDE, ROOT, check
from tests.pages.reading import address, figure, numbers, opened, sentences, told, view
from tests.transformer.tiny import tiny_model
from transformer.runs.replay import replay

SENTENCE = {"zh-en": "我喜欢喝咖啡。", "en-fr": "The house is small.", "reverse": "abcdef"}


@pytest.fixture
def page(open_page):
    """A function that opens the page: `page(model="reverse")`."""
    return lambda **parameters: open_page(INSIDE, **parameters)


def checkpoint_of(name):
    return opened(name)


def trace_of(name, source):
    checkpoint = checkpoint_of(name)
    return loading.runner().trace(checkpoint, checkpoint.query(source))


def tables(test):
    """The table of a stack's shapes, and the components' table."""
    return [element.value for element in test.dataframe]


def drawn_blocks(test):
    rows = figure(test, "model_diagram")["layout"]["meta"]["table"]["rows"]
    return {row[0]: row[1:] for row in rows}


# ------------------------------------------------------------------------------------------------ the diagram


@pytest.mark.parametrize("name", SENTENCE)
def test_the_blocks_of_a_diagram_add_up_to_the_model(page, name):
    test, trace = page(model=name, src=SENTENCE[name]), trace_of(name, SENTENCE[name])
    model, config = checkpoint_of(name).model, checkpoint_of(name).config
    blocks = drawn_blocks(test)
    assert sum(row[2] or 0 for row in blocks.values()) == sum(p.numel() for p in model.parameters())
    s, t, d, f = len(trace.src_ids), trace.n_steps, config.d_model, config.d_ff
    expected = config.n_encoder_layers * (4 * s * d * d + 2 * s * s * d + 2 * s * d * f)
    expected += config.n_decoder_layers * (
        4 * t * d * d + 2 * t * t * d + 2 * (s + t) * d * d + 2 * s * t * d + 2 * t * d * f
    )
    assert sum(row[3] or 0 for row in blocks.values()) == expected + t * d * config.tgt_vocab_size
    assert f"takes {expected + t * d * config.tgt_vocab_size:,} multiply-adds" in told(test)
    cross = blocks["Decoder layer 2: cross-attention"]
    assert f"maps [{config.n_heads}, {t}, {s}]" in cross[1]
    assert cross[2] == sum(p.numel() for p in model.decoder.layers[1].cross_attn.parameters())


def test_what_a_model_holds_is_read_once_and_forgotten_with_it():
    model = tiny_model()
    found = contents(model)
    assert contents(model) is found
    assert sum(count for _, count in found.parameters) == model.config.count_parameters()
    assert sum(one.parameters for one in found.held.values()) == model.config.count_parameters()
    gone = ref(found)
    del model, found
    gc.collect()
    assert gone() is None


def test_equal_layers_are_drawn_once_on_demand(page):
    test = page(model="reverse")
    assert "Encoder layer 2: self-attention" in drawn_blocks(test)
    check(test.toggle(key="fold").set_value(True).run())
    blocks = drawn_blocks(test)
    assert "Encoder layers 1 to 2, × 2: self-attention each" in blocks
    attention = checkpoint_of("reverse").model.encoder.layers[0].self_attn
    held = blocks["Encoder layers 1 to 2, × 2: self-attention each"][2]
    assert held == sum(p.numel() for p in attention.parameters())


def test_every_number_of_layers_has_a_readable_diagram():
    for n in range(1, 65):
        for grouping in (each_layer, few_layers, one_layer):
            groups = grouping(n)
            assert [layer for first, last in groups for layer in range(first, last + 1)] == list(range(n))
        assert len(few_layers(n)) <= model_blocks.MOST_DRAWN
    model = tiny_model(n_encoder_layers=64, n_decoder_layers=9, norm="post", final_norm=False, tie_output=False)
    one = sized(model, n_source=5, n_target=4)
    drawn = charts.model_diagram_spec(*stacks(one, grouping=few_layers), title="t")
    assert drawn["layout"]["height"] < 1400
    assert "Encoder layers 2 to 63, × 62: feed-forward each" in {
        row[0] for row in drawn["layout"]["meta"]["table"]["rows"]
    }
    every = [block for stack in stacks(one, grouping=each_layer) for block in blocks_of(stack)]
    assert sum(block.parameters or 0 for block in every) == sum(p.numel() for p in model.parameters())
    assert len({block.place for block in every}) == len({block.name for block in every}) == len(every)


def test_a_post_norm_model_without_final_norms_says_so():
    model = tiny_model(norm="post", final_norm=False, positions="learned", tie_output=False, output_bias=True)
    one = sized(model, n_source=5, n_target=4)
    encoder, decoder = stacks(one, grouping=each_layer)
    assert not encoder.pre
    assert [block.place for block in decoder.end] == ["decoder.output", "decoder.logits"]
    assert decoder.end[0].parameters == 19 * 12 + 19
    assert decoder.positions.parameters == 16 * 12
    words = in_words(model.config)
    for part in (
        "post-norm",
        "no other norm follows the last layer",
        "a learned table",
        "a table of its own",
        "including the output layer, and all norms have biases",
    ):
        assert part in words


def test_every_block_leads_to_a_view():
    one = sized(tiny_model(), n_source=5, n_target=4)
    found = {block.place: destination(block.place) for s in stacks(one, grouping=each_layer) for block in blocks_of(s)}
    pages = {there.page for there in found.values() if there.page}
    assert pages == {"attention", "masks", "positions"}
    assert all((ROOT / "pages" / "explore" / f"{page}.py").exists() for page in pages)
    assert all(there.page or there.fields["inside_panel"] for there in found.values())
    cross = found["decoder.2.cross_attn"]
    assert cross.page == "attention"
    assert cross.fields.items() >= {"kind": "cross", "layer": 2, "panel": "overview"}.items()
    assert found["encoder.1.ffn"].fields.items() >= {
        "inside_panel": "ffn", "layer": 1, "side": "source", "kind": "encoder"}.items()  # fmt: skip
    assert found["decoder.0.ffn.norm"].fields["inside_panel"] == "stream"
    assert found["decoder.mask"].fields["mask"] == "decoder"
    assert found["decoder.output"].fields == {"inside_panel": "lens"}


def test_the_menu_opens_a_part(page):
    test = page(model="reverse", src="abcdef", query=2, key=3)
    check(test.selectbox(key=inside_model_panels.PLACE).set_value("decoder.1.ffn").run())
    check(test.button(key=inside_model_panels.OPEN).click().run())
    assert address(test)["inside"] == "ffn"
    assert view(test).layer == 1
    assert view(test).query is None  # a cell of the cross-attention that was looked at


def test_blocks_of_other_pages_have_their_addresses(page):
    test = page(model="reverse", src="abcdef", query=2, key=3)
    links = figure(test, "model_diagram")["layout"]["meta"]["links"]
    path, _, query = links["encoder.1.self_attn"].partition("?")
    assert path == "attention"
    expected = {"model": ["reverse"], "src": ["abcdef"], "kind": ["encoder"], "layer": ["2"]}
    assert parse_qs(query).items() >= expected.items()
    assert not {"query", "key"} & set(parse_qs(query))  # a cell of the map that was looked at
    assert "decoder.1.ffn" not in links
    check(test.selectbox(key=inside_model_panels.PLACE).set_value("encoder.1.self_attn").run())
    assert "Open its view" in [text.value for text in test.markdown]  # a link, where there is a menu of pages


# ------------------------------------------------------------------------------------------------ shapes


@pytest.mark.parametrize("name", SENTENCE)
def test_shapes_are_those_of_the_values(page, name):
    trace = trace_of(name, SENTENCE[name])
    values = replay(checkpoint_of(name), trace, ["*"])
    encoder, decoder = (tables(page(model=name, src=SENTENCE[name], side=side))[0] for side in ("source", "target"))
    for table in (encoder, decoder):
        for site, shape in zip(table["Name in the code"], table["Shape"], strict=True):
            assert site == "—" or shape == str(list(values[site].shape)), site
    listed = {*encoder["Name in the code"], *decoder["Name in the code"]}
    assert listed - {"—"} == {site for site in values if not {"1", "2"} & set(site.split("."))}
    assert decoder["Shape"].iloc[-1] == f"[{trace.n_steps}, {checkpoint_of(name).config.tgt_vocab_size}]"


def test_re_arrangements_are_what_the_projections_see(page):
    test, checkpoint, trace = (
        page(model="reverse", src="abcdef"),
        checkpoint_of("reverse"),
        trace_of("reverse", "abcdef"),
    )
    model = deepcopy(checkpoint.model)  # a copy, in which the three projections are not joined
    seen, attention = {}, model.encoder.layers[0].self_attn
    handles = [
        attention.q_proj.register_forward_hook(lambda _, given, made: seen.update(projected=made.shape)),
        attention.out_proj.register_forward_hook(lambda _, given, made: seen.update(joined=given[0].shape)),
    ]
    with torch.inference_mode():
        model.encode(torch.tensor([trace.src_ids]))
    for handle in handles:
        handle.remove()
    shapes = dict(zip(tables(test)[0]["Step"], tables(test)[0]["Shape"], strict=True))
    length, width = seen["projected"][1:]
    assert shapes["Heads side by side"] == str(list(seen["joined"][1:]))
    assert shapes["Queries, cut into heads"] == f"[{length}, 4, {width // 4}]"


def test_guess_mode_shows_no_later_token(page):
    test = page(model="reverse", src="abcdef", guess=1, step=3, side="target")
    assert "3 target tokens" in told(test)
    assert tables(test)[0]["Shape"].iloc[-1] == "[3, 30]"
    assert "Logits [3, 30]" in str(figure(test, "model_diagram"))


def test_the_stack_of_the_shapes_stands_in_the_address(page):
    test = page(model="reverse", src="abcdef")
    assert tables(test)[0]["Name in the code"].iloc[-1] == "encoder.output"
    test.button_group(key="side").set_value("target").run()
    assert tables(test)[0]["Name in the code"].iloc[-1] == "logits"
    assert address(test)["side"] == "target"


def test_layers_that_differ_are_written_one_by_one():
    seen = shape_panels.Pass((1, 2), (1, 2), {f"encoder.{k}.output": (1, 2, 4 + (k == 2)) for k in range(4)})
    assert shape_panels.equal_layers(seen, "encoder", 4) == [range(2), range(2, 3), range(3, 4)]


# ------------------------------------------------------------------------------------------------ costs


def test_the_table_and_the_charts_are_about_the_chosen_length(page):
    test = page(model="reverse", src="abcdef")
    config, n = checkpoint_of("reverse").config, 302  # where the n² part overtakes
    assert "from n = 302 on" in told(test)
    check(test.select_slider(key=inside_model_panels.LENGTH).set_value(n).run())
    table = tables(test)[1].set_index("Component")
    d, f, v = config.d_model, config.d_ff, config.tgt_vocab_size
    expected = {
        "Encoder self: projections": 2 * n * 4 * d * d, "Encoder self: n² part": 2 * 2 * n * n * d,
        "Encoder feed-forward": 2 * 2 * n * d * f, "Decoder self: projections": 2 * n * 4 * d * d,
        "Decoder self: n² part": 2 * 2 * n * n * d, "Cross: projections": 2 * n * 4 * d * d,
        "Cross: n² part": 2 * 2 * n * n * d, "Decoder feed-forward": 2 * 2 * n * d * f, "Output layer": n * d * v,
    }  # fmt: skip
    column = table[f"Multiply-adds, n = {n}"]
    assert {name: column[name] for name in expected} == expected
    assert column["All"] == sum(expected.values())
    assert table["Parameters"]["All"] == config.count_parameters() == table["Parameters"].iloc[:-1].sum()
    parameters, done = figure(test, "cost_shares")["data"]
    names = [tick for tick in table.index[:-1] if tick != "Target embedding"]  # shared: nothing of its own
    np.testing.assert_allclose(numbers(parameters["x"]), [100 * table["Parameters"][k] / 237_312 for k in names])
    np.testing.assert_allclose(numbers(done["x"]), [100 * expected.get(k, 0) / sum(expected.values()) for k in names])
    quadratic = sum(count for name, count in expected.items() if "n²" in name)
    assert quadratic > sum(expected.values()) - quadratic
    lines = {trace["name"]: trace for trace in figure(test, "cost_curves")["data"]}
    maps = lines[model_pictures.MAPS_LINE]
    place = numbers(maps["x"]).tolist().index(n)
    assert numbers(maps["y"])[place] == quadratic
    assert numbers(lines[model_pictures.LINEAR_LINE]["y"])[place] == sum(expected.values()) - quadratic
    assert numbers(lines["Output layer"]["y"])[place] == n * d * v


@pytest.mark.parametrize("name", SENTENCE)
def test_the_current_length_is_chosen_first_and_the_sentence_is_counted_apart(page, name):
    test, trace = page(model=name, src=SENTENCE[name]), trace_of(name, SENTENCE[name])
    slider, config = test.select_slider(key=inside_model_panels.LENGTH), checkpoint_of(name).config
    assert slider.value == max(len(trace.src_ids), trace.n_steps)
    table = tables(test)[1].set_index("Component")["Multiply-adds, this sentence"]
    layers = config.n_decoder_layers
    assert table["Cross: n² part"] == layers * 2 * len(trace.src_ids) * trace.n_steps * config.d_model
    buffers = sum(tensor.numel() for tensor in checkpoint_of(name).model.buffers())
    assert (f"{buffers:,} numbers in buffers" in told(test)) == bool(buffers)
    assert not sentences(test)
    options = model_pictures.lengths(config, 5)
    assert all(one < other for one, other in itertools.pairwise(options))
    assert {5, config.max_len, model_pictures.FURTHEST} <= {*options}
