"""What is wrong with parameters by themselves."""

import pytest
import torch

from tests.transformer.doctor.changed import changed, found


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_value_that_is_no_number_is_found_and_where_it_first_shows(value, reverse):
    def spoil(model):
        model.decoder.layers[1].ffn.down_proj.weight[0, 0] = value

    finding = found(changed(reverse, spoil), "finite")
    assert finding.verdict == "broken"
    assert finding.measured.number == 1
    assert finding.measured.places[0] == "decoder.layers.1.ffn.down_proj.weight"
    assert finding.measured.places[-1].startswith("decoder.1.")
    assert found(reverse, "finite").verdict == "well"


def test_a_row_that_no_sentence_reads_is_found_too(reverse):
    def spoil(model):
        model.encoder.embedding.positions.table[-1] = float("nan")

    measured = found(changed(reverse, spoil), "finite").measured
    assert measured.verdict == "broken"
    assert measured.places == ("encoder.embedding.positions.table",)


def test_numbers_that_grow_too_large_are_found(reverse):
    def spoil(model):
        with torch.no_grad():
            model.src_table.mul_(1e38)

    measured = found(changed(reverse, spoil), "finite").measured
    assert measured.verdict == "broken"
    assert measured.number == 0
    assert len(measured.places) == 1
