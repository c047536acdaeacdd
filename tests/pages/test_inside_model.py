"""The diagram, the shapes and the costs of the Inside page are of the model and the run at hand."""

import gc
from urllib.parse import parse_qs
from weakref import ref

import pytest

from glassformer import charts
from glassformer.inside.model import blocks as model_blocks
from glassformer.inside.model import model_panel as inside_model_panels
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
from tests.pages.conftest import INSIDE, check
from tests.pages.reading import address, figure, opened, view
from tests.transformer.tiny import tiny_model


@pytest.fixture
def page(open_page):
    """A function that opens the page: `page(model="reverse")`."""
    return lambda **parameters: open_page(INSIDE, **parameters)


def drawn_blocks(test):
    rows = figure(test, "model_diagram")["layout"]["meta"]["table"]["rows"]
    return {row[0]: row[1:] for row in rows}


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
    folded = drawn_blocks(page(model="reverse", fold=1))
    attention = opened("reverse").model.encoder.layers[0].self_attn
    held = folded["Encoder layers 1 to 2, × 2: self-attention each"][2]
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


def test_every_block_leads_to_a_view():
    one = sized(tiny_model(), n_source=5, n_target=4)
    found = {block.place: destination(block.place) for s in stacks(one, grouping=each_layer) for block in blocks_of(s)}
    pages = {there.page for there in found.values() if there.page}
    assert pages == {"attention", "masks", "positions"}
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


def test_the_address_opens_the_table_of_kinds_of_layers(page):
    def rows(**more):
        test = page(model="reverse", src="glass", **more)
        found = [one.value for one in test.table if "Recurrence" in {str(cell) for cell in one.value.iloc[:, 0]}]
        return [list(map(str, row)) for one in found for row in one.to_numpy()]

    assert rows() == []
    attention, window, recurrence, convolution, dilated = rows(distances="1")
    n = int(recurrence[2])
    assert attention[1:4] == ["1", "1", str(n)]
    assert window[1] == convolution[1] == recurrence[1] == str(n - 1)
    assert recurrence[4] == f"{2 * n * 64 * 64:,}"
    assert 1 < int(dilated[1]) < n - 1
