"""What is chosen on a page stands in its address, and an address brings the choice back."""

import pytest
import torch

from glassformer.inside import embeddings_panel as pieces
from glassformer.inside.model import model_panel
from glassformer.positions import position_controls
from glassformer.runs import loading
from glassformer.state import session
from tests.pages.conftest import ROOT, check
from tests.pages.reading import address, payload, sentences, view
from transformer.checkpoint.save import CheckpointContents, save
from transformer.model.config import ModelConfig
from transformer.model.transformer import Transformer
from transformer.text.tokenizer import Tokenizer

PAGES = {
    name: ROOT / "pages" / "explore" / f"{name}.py" for name in ("inside", "masks", "positions", "attention", "step")
}


SOURCE = "abcdef"

CHOICES = (
    ("inside", {"inside": "lens"}, "depths", "sublayer", {"depths": "sublayer"}),
    ("inside", {"inside": "lens"}, "lens_colour", "rank", {"lens": "rank"}),
    ("inside", {"inside": "stream"}, "norm", 2, {"norm": "3"}),
    ("inside", {"inside": "model"}, model_panel.LENGTH, 64, {"tokens": "64"}),
    ("inside", {"inside": "model"}, "fold", True, {"fold": "1"}),
    ("inside", {"inside": "pieces"}, "nearness", "distance", {"near": "distance"}),
    ("masks", {"masks": "checks"}, "mask_changed", 2, {"changed": "3"}),
    ("positions", {"model": "en-fr", "src": "A dog."}, position_controls.COUNT, 16, {"drawn": "16"}),
    ("attention", {}, "own_scale", True, {"own": "1"}),
    ("attention", {"panel": "head"}, "words", True, {"words": "1"}),
    ("attention", {"panel": "head"}, "kind", "encoder", {"kind": "encoder"}),
    ("attention", {"panel": "head"}, "layer", 1, {"layer": "2"}),
    ("attention", {"panel": "head", "layer": 2}, "head", 2, {"layer": "2", "head": "3"}),
    ("attention", {"panel": "head"}, "aggregate", "max", {"together": "max"}),
    ("masks", {"masks": "one_row"}, "mask_head", 3, {"layer": "1", "head": "4"}),
    ("step", {"show": "output"}, "unsure", "ten", {"unsure": "ten"}),
)


def widget(test, key):
    """The control of a key, whatever kind it is."""
    kinds = (test.segmented_control, test.selectbox, test.select_slider, test.text_input, test.toggle)
    return next(found for kind in kinds for found in kind if found.key == key)


@pytest.mark.parametrize(("name", "part", "key", "value", "written"), CHOICES, ids=lambda one: str(one)[:20])
def test_a_choice_goes_into_the_address_and_back(open_page, name, part, key, value, written):
    test = open_page(PAGES[name], **{"model": "reverse", "src": SOURCE, **part})
    assert widget(test, key).value != value
    check(widget(test, key).set_value(value).run())
    found = address(test)
    assert found.items() >= written.items()
    again = open_page(PAGES[name], **found)
    assert widget(again, key).value == value
    assert not again.info


@pytest.mark.parametrize(("name", "typed"), [("reverse", "z"), ("zh-en", "水")])
def test_a_typed_piece_goes_into_the_address_and_back(open_page, name, typed):
    test = open_page(PAGES["inside"], model=name, inside="pieces")
    check(test.text_input(key=pieces.TYPED).set_value(typed).run())
    found = address(test)
    assert "." in found["piece"]
    alt = payload(test, "piece_neighbours")["alt"]
    again = open_page(PAGES["inside"], **found)
    assert payload(again, "piece_neighbours")["alt"] == alt


@pytest.mark.parametrize("piece", ["source.", ".3", "source.-1", "source.999999", "source.²"])
def test_a_piece_that_no_table_has_is_passed_over(open_page, piece):
    own = open_page(PAGES["inside"], model="reverse", src=SOURCE, inside="pieces")
    test = open_page(PAGES["inside"], model="reverse", src=SOURCE, inside="pieces", piece=piece)
    assert payload(test, "piece_neighbours")["alt"] == payload(own, "piece_neighbours")["alt"]


@pytest.mark.parametrize(
    ("name", "part", "wrong"),
    [
        ("inside", "model", {"tokens": 12345}),
        ("inside", "stream", {"norm": 500}),
        ("inside", "lens", {"depths": "neither", "lens": "?"}),
        ("masks", None, {"masks": "checks", "changed": 400}),
        ("positions", None, {"drawn": 7}),
    ],
)
def test_what_there_is_not_gives_way_to_the_pages_own_choice(open_page, name, part, wrong):
    parts = {"inside": part} if part else {}
    check(open_page(PAGES[name], model="reverse", src=SOURCE, **parts, **wrong))


def test_another_page_opens_on_its_own_cell(open_page):
    """A row and a column number other pieces there."""
    test = open_page(PAGES["attention"], model="reverse", src=SOURCE, panel="head", query=3, key=2)
    assert (view(test).query, view(test).key) == (2, 1)
    test.session_state[session.URL_PAGE] = "masks"  # where the visitor comes from
    test.query_params.clear()
    check(test.run())
    assert (view(test).query, view(test).key) == (None, None)


# ---------------------------------------------------------------- a model of another shape


@pytest.fixture
def deep(tmp_path, monkeypatch):
    """A checkpoint with three encoder layers, one decoder layer, and no biases."""
    pieces = (ROOT / "checkpoints" / "reverse" / "pieces.model").read_bytes()
    size = Tokenizer(pieces).size
    config = ModelConfig(
        n_encoder_layers=3, n_decoder_layers=1, d_model=16, n_heads=2, d_ff=32, src_vocab_size=size,
        tgt_vocab_size=size, shared_vocab=True, max_len=32, bias=False,
    )  # fmt: skip
    torch.manual_seed(0)
    save(
        CheckpointContents(config, Transformer(config).state_dict(), (pieces,), {"examples": ["abc"]}),
        tmp_path / "deep",
    )
    monkeypatch.setenv(loading.ENVIRONMENT, str(tmp_path))
    return "deep"


def test_a_deeper_encoder_is_no_reason_for_a_note(open_page, deep):
    test = open_page(PAGES["inside"], model=deep, src="abc", inside="ffn", side="source", layer=3)
    assert "was requested" not in sentences(test)
    assert "layer 3" in payload(test, "ffn_histogram")["alt"]
    assert view(test).layer == 2
