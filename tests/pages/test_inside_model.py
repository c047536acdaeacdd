"""The diagram, the shapes and the costs of the Inside page are of the model and the run at hand."""

import gc
from urllib.parse import parse_qs
from weakref import ref

import pytest

from glassformer import charts
from glassformer.inside.model import model_panel
from glassformer.inside.model.blocks import (
    MOST_DRAWN,
    blocks_of,
    contents,
    destination,
    each_layer,
    few_layers,
    one_layer,
    sized,
    stacks,
)
from tests.pages.conftest import INSIDE
from tests.pages.reading import address, choose, figure, opened, press, view
from tests.transformer.tiny import tiny_model


@pytest.fixture
def page(open_page):
    return lambda **parameters: open_page(INSIDE, model="reverse", **parameters)


def rows(drawn):
    return {row[0]: row[1:] for row in drawn["layout"]["meta"]["table"]["rows"]}


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
    attention = opened("reverse").model.encoder.layers[0].self_attn
    held = rows(figure(page(fold=1), "model_diagram"))["Encoder layers 1 to 2, × 2: self-attention each"][2]
    assert held == sum(p.numel() for p in attention.parameters())


def test_every_number_of_layers_has_a_readable_diagram():
    for n in range(1, 65):
        for grouping in (each_layer, few_layers, one_layer):
            groups = grouping(n)
            assert [layer for first, last in groups for layer in range(first, last + 1)] == list(range(n))
        assert len(few_layers(n)) <= MOST_DRAWN
    model = tiny_model(n_encoder_layers=64, n_decoder_layers=9, norm="post", final_norm=False, tie_output=False)
    one = sized(model, n_source=5, n_target=4)
    drawn = charts.model_diagram_spec(*stacks(one, grouping=few_layers), title="t")
    assert drawn["layout"]["height"] < 1400
    assert "Encoder layers 2 to 63, × 62: feed-forward each" in rows(drawn)
    every = [block for stack in stacks(one, grouping=each_layer) for block in blocks_of(stack)]
    assert sum(block.parameters or 0 for block in every) == sum(p.numel() for p in model.parameters())
    assert len({block.place for block in every}) == len({block.name for block in every}) == len(every)


def test_every_block_leads_to_a_view():
    one = sized(tiny_model(), n_source=5, n_target=4)
    found = {block.place: destination(block.place) for s in stacks(one, grouping=each_layer) for block in blocks_of(s)}
    assert {there.page for there in found.values() if there.page} == {"attention", "masks", "positions"}
    assert all(there.page or there.fields["inside_panel"] for there in found.values())
    assert found["decoder.2.cross_attn"].page == "attention"
    expected = {
        "decoder.2.cross_attn": {"kind": "cross", "layer": 2, "panel": "overview"},
        "encoder.1.ffn": {"inside_panel": "ffn", "layer": 1, "side": "source", "kind": "encoder"},
        "decoder.0.ffn.norm": {"inside_panel": "stream"},
        "decoder.mask": {"mask": "decoder"},
        "decoder.output": {"inside_panel": "lens"},
    }
    assert [place for place, fields in expected.items() if not found[place].fields.items() >= fields.items()] == []
    assert found["decoder.output"].fields == expected["decoder.output"]


def test_the_menu_opens_a_part_and_leads_to_other_pages_without_the_cell_that_was_looked_at(page):
    test = page(src="abcdef", query=2, key=3)
    links = figure(test, "model_diagram")["layout"]["meta"]["links"]
    path, _, query = links["encoder.1.self_attn"].partition("?")
    assert path == "attention"
    expected = {"model": ["reverse"], "src": ["abcdef"], "kind": ["encoder"], "layer": ["2"]}
    assert parse_qs(query).items() >= expected.items()
    assert not {"query", "key"} & set(parse_qs(query))
    assert "decoder.1.ffn" not in links
    choose(test, model_panel.PLACE, "encoder.1.self_attn")
    assert "Open its view" in [text.value for text in test.markdown]  # a link, where there is a menu of pages
    press(choose(test, model_panel.PLACE, "decoder.1.ffn"), model_panel.OPEN)
    assert (address(test)["inside"], view(test).layer, view(test).query) == ("ffn", 1, None)


def test_the_address_opens_the_table_of_kinds_of_layers(page):
    def kinds(**more):
        found = [one.value for one in page(src="glass", **more).table if "Recurrence" in one.value.to_string()]
        return [list(map(str, row)) for one in found for row in one.to_numpy()]

    assert kinds() == []
    attention, window, recurrence, convolution, dilated = kinds(distances="1")
    n = int(recurrence[2])
    assert attention[1:4] == ["1", "1", str(n)]
    assert window[1] == convolution[1] == recurrence[1] == str(n - 1)
    assert recurrence[4] == f"{2 * n * 64 * 64:,}"
    assert 1 < int(dilated[1]) < n - 1
