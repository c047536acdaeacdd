"""Of a checkpoint that computes what is not a number every page says at which site, and draws none of it."""

import math
import shutil

import pytest

from glassformer.runs import loading
from tests.pages.conftest import PAGES, STEP
from tests.pages.reading import sentences
from tests.transformer.spoiling import weights_with


@pytest.fixture
def broken(shared_checkpoint_folder, tmp_path, open_page, monkeypatch):
    """A function that opens a page on a model with one NaN: `broken("decoder.embedding...", (9, 0), "step")`."""

    def opened(name, place, page, **view):
        folder = tmp_path / "own" / "broken"
        shutil.copytree(shared_checkpoint_folder, folder)
        file = folder / "model.safetensors"
        file.write_bytes(weights_with(lambda state: state[name].__setitem__(place, math.nan))(file.read_bytes()))
        monkeypatch.setenv(loading.ENVIRONMENT, str(folder.parent))
        return open_page(PAGES[page], model="broken", src="ba lo mi", **view)

    return opened


@pytest.mark.parametrize("page", ["step", "masks", "positions"])
def test_a_page_names_the_site(broken, page):
    test = broken("decoder.layers.0.cross_attn.q_proj.weight", (0, 0), page)
    assert "At decoder.0.cross_attn.queries this model computes" in sentences(test)
    assert any(element.value == "Is this model healthy? Ask the doctor" for element in test.markdown)


TABLE = ("encoder.embedding.positions.table", (20, 0))  # a row that no sentence of three pieces reads


@pytest.mark.parametrize("part", ["table", "shift"])
def test_a_table_of_positions_is_measured_only_if_it_is_finite(broken, part):
    """The run is right, the table's own numbers would not be."""
    test = broken(*TABLE, "positions", positions=part)
    (error,) = test.error
    assert "At encoder.embedding.positions" in error.value.replace("\\", "")
    assert not test.get("bidi_component")


def test_the_sentence_is_still_drawn(broken, open_page):
    test = broken(*TABLE, "positions", positions="sentence")
    assert not test.error
    assert test.get("bidi_component")
    assert not open_page(STEP, model="broken", src="ba lo mi").error
