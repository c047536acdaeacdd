"""What is chosen on a page stands in its address, and an address brings the choice back."""

import pytest

from glassformer.attention import one_weight_panel
from glassformer.forcing import forcing_panels
from glassformer.inside import embeddings_panel as pieces
from glassformer.inside import ffn_panel
from glassformer.inside.model import model_panel
from glassformer.positions import position_controls, position_panels
from glassformer.runs import loading
from glassformer.shared.controls import NONE
from glassformer.state import session
from tests.pages.conftest import PAGES, check
from tests.pages.reading import address, choose, controls, payload, sentences, view
from tests.transformer.one_stack import written

SOURCE = "abcdef"

# A page, its part, what is chosen there by the key of its control, and what the address then says, or says no more.
CHOICES = (
    ("inside", {"inside": "lens"}, "depths", "sublayer", {"depths": "sublayer"}),
    ("inside", {"inside": "lens"}, "lens_colour", "rank", {"lens": "rank"}),
    ("inside", {"inside": "stream"}, "norm", 2, {"norm": "3"}),
    ("inside", {"inside": "stream"}, "stream_token", 2, {"key": "3", "step": None}),
    ("inside", {"inside": "model"}, model_panel.LENGTH, 64, {"tokens": "64"}),
    ("inside", {"inside": "model"}, "fold", True, {"fold": "1"}),
    ("inside", {"inside": "pieces"}, "nearness", "distance", {"near": "distance"}),
    ("inside", {"inside": "ffn"}, ffn_panel.NEURON, 9, {"neuron": "9"}),
    ("inside", {"inside": "ffn", "neuron": 9}, ffn_panel.TOKEN, 3, {"key": "4", "neuron": "9"}),
    ("inside", {"inside": "ffn", "neuron": 9}, ffn_panel.LAYER, 1, {"layer": "2", "neuron": None}),  # another neuron
    ("inside", {"inside": "ffn", "neuron": 9}, "side", "target", {"side": "target"}),
    ("inside", {"inside": "fast", "kind": "encoder", "tile_keys": 2}, "tile", 2, {"tile": "2"}),
    ("masks", {"masks": "checks"}, "mask_changed", 2, {"changed": "3"}),
    ("masks", {"masks": "one_row"}, "mask_head", 3, {"layer": "1", "head": "4"}),
    ("masks", {"mask": "causal"}, "mask_query", 3, {"query": "4"}),
    ("masks", {"mask": "causal", "query": 3}, "mask_key", 1, {"query": "3", "key": "2"}),
    ("masks", {"mask": "source"}, "mask_companion_2", "ab", {"with": "transformer\n\nab"}),
    ("positions", {"model": "en-fr", "src": "A dog."}, position_controls.COUNT, 16, {"drawn": "16"}),
    ("positions", {"model": "en-fr"}, "apart", False, {"apart": "0"}),
    ("positions", {"dims": "4.64"}, "dims", [5], {"dims": "6"}),
    ("positions", {"positions": "shift"}, "shift", 4, {"shift": "4"}),
    ("positions", {"positions": "sentence"}, position_panels.TOKEN, 2, {"key": "3"}),
    ("positions", {"positions": "sentence", "side": "target"}, position_panels.TOKEN, 2, {"query": "3"}),
    ("attention", {}, "own_scale", True, {"own": "1"}),
    ("attention", {"panel": "head"}, "words", True, {"words": "1"}),
    ("attention", {"panel": "head"}, "aggregate", "max", {"together": "max"}),
    ("attention", {"panel": "head", "query": 2, "key": 4}, "kind", "decoder", {"kind": "decoder", "query": None}),
    ("attention", {"panel": "head"}, "layer", 1, {"layer": "2"}),
    ("attention", {"panel": "head", "layer": 2, "head": 3}, "head", 0, {"layer": "2", "head": "1"}),
    ("attention", {"panel": "head", "layer": 2, "head": 3}, "layer", NONE, {"layer": None, "head": None}),
    ("attention", {"panel": "walk", "layer": 1, "head": 1}, one_weight_panel.QUERY_CHOICE, 3, {"query": "4"}),
    ("attention", {"panel": "walk", "layer": 1, "head": 1}, one_weight_panel.KEY_CHOICE, 1, {"key": "2"}),
    ("step", {"show": "output"}, "unsure", "ten", {"unsure": "ten"}),
    ("step", {}, session.MAX_NEW, 3, {"max": "3"}),
    ("step", {"how": "sampling"}, session.SEED, 6, {"seed": "6"}),
    ("search", {"search": "sampling", "how": "sampling"}, "try_temperature", 3.0, {"try_temp": "3", "temp": "1"}),
    ("forcing", {}, forcing_panels.BOX, "fedxba", {"ref": "fedxba"}),
)


@pytest.fixture
def reverse(open_page):
    """A function that opens a page on the model that reverses letters: `reverse("inside", inside="lens")`."""
    return lambda name, **parameters: open_page(PAGES[name], **{"model": "reverse", "src": SOURCE} | parameters)


@pytest.mark.parametrize(("name", "part", "key", "value", "written"), CHOICES, ids=lambda one: str(one)[:20])
def test_a_choice_goes_into_the_address_and_back(reverse, name, part, key, value, written):
    test = reverse(name, **part)
    assert controls(test)[key].value != value
    found = address(choose(test, key, value))
    assert {name: found.get(name) for name in written} == written
    again = reverse(name, **found)
    assert controls(again)[key].value == value
    assert name == "forcing" or not again.info


@pytest.mark.parametrize(("name", "typed"), [("reverse", "z"), ("zh-en", "水")])
def test_a_typed_piece_goes_into_the_address_and_back(open_page, name, typed):
    test = choose(open_page(PAGES["inside"], model=name, inside="pieces"), pieces.TYPED, typed)
    assert "." in address(test)["piece"]
    again = open_page(PAGES["inside"], **address(test))
    assert payload(again, "piece_neighbours")["alt"] == payload(test, "piece_neighbours")["alt"]


@pytest.mark.parametrize("piece", ["source.", ".3", "source.-1", "source.999999", "source.²"])
def test_a_piece_that_no_table_has_is_passed_over(reverse, piece):
    own, test = reverse("inside", inside="pieces"), reverse("inside", inside="pieces", piece=piece)
    assert payload(test, "piece_neighbours")["alt"] == payload(own, "piece_neighbours")["alt"]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("inside", {"inside": "model", "tokens": 12345}),
        ("inside", {"inside": "stream", "norm": 500}),
        ("inside", {"inside": "lens", "depths": "neither", "lens": "?"}),
        ("masks", {"masks": "checks", "changed": 400}),
        ("positions", {"drawn": 7}),
    ],
)
def test_what_there_is_not_gives_way_to_the_pages_own_choice(reverse, name, wrong):
    reverse(name, **wrong)


def test_another_page_opens_on_its_own_cell(reverse):
    """A row and a column number other pieces there."""
    test = reverse("attention", panel="head", query=3, key=2)
    assert (view(test).query, view(test).key) == (2, 1)
    test.session_state[session.URL_PAGE] = "masks"  # where the visitor comes from
    test.query_params.clear()
    check(test.run())
    assert (view(test).query, view(test).key) == (None, None)


def test_a_deeper_encoder_is_no_reason_for_a_note(open_page, tmp_path, monkeypatch):
    written(tmp_path / "deep", "deep", {"n_encoder_layers": 3, "n_decoder_layers": 1, "bias": False})
    monkeypatch.setenv(loading.ENVIRONMENT, str(tmp_path))
    test = open_page(PAGES["inside"], model="deep", src="ba lo", inside="ffn", side="source", layer=3)
    assert "was requested" not in sentences(test)
    assert "layer 3" in payload(test, "ffn_histogram")["alt"]
    assert view(test).layer == 2
