"""Of a checkpoint that computes what is not a number every page says at which site, and draws none of it."""

import math
import shutil

import pytest

from glassformer.runs import loading
from tests.pages.conftest import ROOT, STEP
from tests.transformer.spoiling import weights_with

PAGES = ROOT / "pages" / "explore"
POSITIONS = PAGES / "positions.py"


@pytest.fixture
def broken(shared_checkpoint_folder, tmp_path, monkeypatch):
    """A function that lists a checkpoint with one NaN as "broken": `broken("decoder.embedding...", (9, 0))`."""

    def spoil(name, place):
        folder = tmp_path / "own" / "broken"
        shutil.copytree(shared_checkpoint_folder, folder)

        def change(state):
            state[name][place] = math.nan

        file = folder / "model.safetensors"
        file.write_bytes(weights_with(change)(file.read_bytes()))
        monkeypatch.setenv(loading.ENVIRONMENT, str(folder.parent))

    return spoil


@pytest.mark.parametrize("page", ["step", "masks", "positions"])
def test_a_page_names_the_site(broken, open_page, page):
    broken("decoder.layers.0.cross_attn.q_proj.weight", (0, 0))
    test = open_page(PAGES / f"{page}.py", model="broken", src="ba lo mi")
    said = [error.value.replace("\\", "") for error in test.error]
    assert any("At decoder.0.cross_attn.queries this model computes" in text for text in said), said
    assert any(element.value == "Is this model healthy? Ask the doctor" for element in test.markdown)


@pytest.mark.parametrize("part", ["table", "shift"])
def test_a_table_of_positions_is_measured_only_if_it_is_finite(broken, open_page, part):
    """In a row that no sentence of three pieces reads: the run is right, the table's own numbers would not be."""
    broken("encoder.embedding.positions.table", (20, 0))
    test = open_page(POSITIONS, model="broken", src="ba lo mi", positions=part)
    (error,) = test.error
    assert "At encoder.embedding.positions" in error.value.replace("\\", "")
    assert not test.get("bidi_component")


def test_the_sentence_is_still_drawn(broken, open_page):
    broken("encoder.embedding.positions.table", (20, 0))
    test = open_page(POSITIONS, model="broken", src="ba lo mi", positions="sentence")
    assert not test.error
    assert test.get("bidi_component")
    assert not open_page(STEP, model="broken", src="ba lo mi").error
