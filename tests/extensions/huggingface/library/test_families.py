"""Folders of each family as transformers saves them now: its numbers, its maps and its greedy outputs."""

import pytest

from glassformer.extensions.huggingface.library import folder
from tests.extensions.huggingface.library.parity import compare, compare_greedy, opened
from tests.extensions.huggingface.library.tiny_families import FAMILIES, model_of


def test_each_family_has_a_row():
    assert set(FAMILIES) == set(folder.FAMILIES)


@pytest.mark.parametrize(
    ("family", "variant"), [(name, variant) for name, row in FAMILIES.items() for variant in ("", *row.variants)]
)
def test_as_it_is_saved_now(tmp_path, family, variant):
    model = model_of(family, variant)
    model.save_pretrained(tmp_path / "m")
    ours = opened(tmp_path / "m")
    compare(model, ours, pad=ours.config.pad_id)
    if ours.config.n_decoder_layers:
        compare_greedy(model, ours)
