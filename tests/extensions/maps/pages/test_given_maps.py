"""A file of maps beside the checkpoints is listed, looked at as it was given, and opened by its address."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from glassformer.attention import one_weight_panel as one_weight
from glassformer.attention.maps_panel import EXPLAIN
from glassformer.extensions.huggingface.folder import FAMILIES
from glassformer.extensions.importers.library.readers import SUFFIXES
from glassformer.extensions.maps.source import ARRAYS, EXAMPLE
from glassformer.runs import loading
from glassformer.state import session
from tests.extensions.maps.library.made_up import SOURCE, TARGET, all_three, weights
from tests.extensions.scripts import TRAINING
from tests.pages.conftest import ATTENTION, CHECKPOINTS, ROOT, STEP, check
from tests.pages.reading import address, figure, numbers, sentences
from tests.pages.test_pseudo_language import PARTS, complaints, data_of_models, explained_by, spoken_whole
from tests.pseudo_language import words_of
from transformer import given_maps, load_maps, save_maps

EXPLORE = ("step", "positions", "masks", "inside", "forcing")
OTHERS = [*(ROOT / "pages" / "explore" / f"{name}.py" for name in EXPLORE), TRAINING]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of checkpoints with maps of all attentions, of one alone, and a broken file."""
    save_maps(all_three(), tmp_path / "tiny.npz")
    tokens = [f"{'Ġ' if n % 3 else ''}t{n}" for n in range(8)]
    save_maps(given_maps(decoder=weights(5, 6, 8, 8, causal=True), target=tokens), tmp_path / "gpt.npz")
    save_maps(given_maps(encoder=weights(2, 2, 5, 5) / 2, source=SOURCE, sums_to_one=False), tmp_path / "half.npz")
    (tmp_path / "broken.npz").write_bytes((tmp_path / "gpt.npz").read_bytes()[:99])
    monkeypatch.setenv(loading.ENVIRONMENT, str(tmp_path))
    return tmp_path


@pytest.fixture
def maps(open_page, folder):
    """A function that opens the Attention page on given maps."""
    return lambda **parameters: open_page(ATTENTION, **{"model": "tiny.npz", **parameters})


def the_map(test):
    return numbers(figure(test, "head_map")["data"][0]["z"])


def rows_of(test):
    """The labels of the map's rows, without their numbers and marks."""
    rows = figure(test, "head_map")["layout"]["meta"]["cells"]["rows"]
    return [re.sub("<.*?>", "", row).split(": ", 1)[1] for row in rows]


def test_a_head_is_drawn_as_it_was_given_and_its_cell_has_its_number(maps):
    test = maps(kind="encoder", panel="head", layer=3, head=4, query=2, key=3)
    np.testing.assert_allclose(the_map(test), weights(3, 4, 5, 5)[2, 3], atol=1e-6)
    assert rows_of(test) == list(SOURCE)
    closed = maps(kind="decoder", panel="head", layer=1, head=1)
    assert np.isnan(the_map(closed)[0, 1:].astype(float)).all(), "closed cells are not drawn as zero"
    assert f"{weights(3, 4, 5, 5)[2, 3, 1, 2]:.4f}" in "".join(one.value for one in test.markdown)
    assert EXPLAIN not in [button.key for button in test.button]


def test_one_weight_and_other_pages_say_that_they_need_a_model_and_what_to_do(maps, open_page):
    assert sentences(maps(panel="walk")) == one_weight.NEEDS_A_MODEL
    for page in OTHERS:
        test = open_page(page, model="tiny.npz")
        assert "needs a model" in sentences(test)
        assert "choose a checkpoint in the sidebar" in sentences(test)
        assert address(test)["model"] == "tiny.npz"
    check(test.selectbox(key=session.MODEL).set_value("reverse").run())
    assert "needs a model" not in sentences(test)


def test_maps_that_changed_since_the_link_was_made_or_are_gone_are_said_to_be(maps, folder, monkeypatch):
    test = maps(kind="encoder")
    revision = all_three().content_hash[:12]
    check(test.selectbox(key="layer").set_value(0).run())
    assert address(test)["rev"] == revision
    save_maps(all_three(encoder=weights(3, 4, 5, 5, seed=7)), folder / "tiny.npz")
    test = maps(kind="encoder", rev=revision, panel="head", layer=1, head=1)
    assert "a different version of tiny.npz" in sentences(test)
    np.testing.assert_allclose(the_map(test), weights(3, 4, 5, 5, seed=7)[0, 0], atol=1e-6)
    left = tuple(entry for entry in loading.entries() if entry.name != "tiny.npz")
    monkeypatch.setattr(loading, "entries", lambda: left)
    (folder / "tiny.npz").unlink()
    assert "The checkpoint “tiny.npz” does not exist" in sentences(check(test.run()))


def test_a_checkpoint_after_maps_and_maps_after_a_checkpoint_draw_their_own(maps):
    test = maps(kind="encoder", layer=3, head=4, panel="head")
    check(test.selectbox(key=session.MODEL).set_value("reverse").run())
    assert test.text_input(key=session.SOURCE).value
    assert the_map(test).shape != (5, 5)
    check(test.selectbox(key=session.MODEL).set_value("gpt.npz").run())
    assert the_map(test).shape == (8, 8)
    assert figure(test, "head_map")["layout"]["title"]["text"].startswith("Decoder self-attention")


def test_the_checkpoints_page_lists_files_says_what_they_hold_and_how_to_make_one(open_page, folder):
    test = open_page(CHECKPOINTS, model="tiny.npz")
    listed = "".join(element.value.replace("\\", "") for element in test.markdown)
    assert "**tiny.npz** attention maps: tiny-mt: the cats" in listed
    assert "broken.npz" in sentences(test)
    assert "is not an .npz file written by numpy, or is incomplete" in sentences(test)
    assert "3 layers × 4 heads, 5 queries × 5 keys" in test.table[0].value.to_string().replace("\\", "")
    assert any("encoder_weights" in code.value for code in test.code)


def test_the_example_makes_a_file_that_opens_and_stands_in_the_readme(tmp_path, monkeypatch):
    """Stand-ins for a model and its tokenizer give what `transformers` gives."""
    layers = tuple(torch.from_numpy(one)[None].requires_grad_() for one in weights(2, 3, 5, 5))

    class Tokenizer:
        def __call__(self, text, return_tensors):
            assert return_tensors == "pt"
            return {"input_ids": torch.arange(5)[None]}

        def convert_ids_to_tokens(self, ids):
            return [SOURCE[int(i)] for i in ids]

    def model(input_ids, output_attentions):
        assert output_attentions
        return SimpleNamespace(attentions=layers)

    monkeypatch.chdir(tmp_path)
    exec(EXAMPLE, {"tokenizer": Tokenizer(), "model": model, "torch": torch, "np": np})
    found = load_maps(tmp_path / "cat.npz")
    np.testing.assert_array_equal(found.maps("encoder"), weights(2, 3, 5, 5))
    assert found.of("encoder").keys == SOURCE
    assert len(EXAMPLE.splitlines()) == 5
    assert f"```py\n{EXAMPLE}\n```" in (ROOT / "docs" / "opening.md").read_text(encoding="utf-8")


PLACES = [(ATTENTION, "overview"), (ATTENTION, "walk"), (STEP, ""), (CHECKPOINTS, "")]
DEEP = [pytest.param(ATTENTION, part, marks=pytest.mark.deep) for part in ("head", "flow", "table")]


@pytest.mark.parametrize(("page", "part"), [*PLACES, *DEEP])
def test_every_sentence_is_said_in_the_readers_language(open_page, folder, page, part):
    (folder / "broken.npz").unlink()
    asked = {"kind": "encoder", "layer": 1, "query": 2, "key": 2} | ({} if part == "flow" else {"head": 2})
    test = open_page(page, model="tiny.npz", lang="qps", panel=part or "overview", **asked)
    families = (family.name for family in FAMILIES.values())
    labels = words_of(*SOURCE, *TARGET, *folder.glob("*"), "tiny-mt", "the cats", EXAMPLE, *SUFFIXES, *FAMILIES)
    labels |= words_of(*families, *ARRAYS)
    texts = (EXAMPLE, *ARRAYS, all_three().content_hash[:12], "[CLS] [SEP] <s>")
    assert not complaints(test, labels | data_of_models(), texts)


def test_what_may_lie_beside_checkpoints_is_spoken_whole(open_page, monkeypatch):
    explained_by(monkeypatch, "maps")
    spoken_whole(open_page, PARTS["checkpoints"], {"dev", "tsv", *words_of(*ARRAYS)})


def test_what_a_file_says_is_shown_letter_by_letter_and_short_in_lists(maps, open_page, folder):
    long = "<b>bold</b> **strong** " + "word " * 500
    save_maps(all_three(sentence=long, source=["<img src=x>", *SOURCE[1:]]), folder / "odd.npz")
    test = maps(model="odd.npz", panel="head", kind="encoder", layer=1, head=1)
    assert r"\<b\>bold\<\/b\> \*\*strong\*\*" in "".join(one.value for one in test.caption)
    assert all(len(one.value) < 1_000 for one in test.caption)
    assert "<img" not in "".join(figure(test, "head_map")["layout"]["meta"]["cells"]["rows"])
    test = open_page(CHECKPOINTS, model="odd.npz")
    assert all(len(one.value) < 1_000 for one in test.markdown)
    assert "word word" in test.table[0].value.to_string(max_colwidth=None)
