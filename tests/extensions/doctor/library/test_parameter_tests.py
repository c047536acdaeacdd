"""Parameters that hold nothing, no number or what was only drawn are found by name; fixed tables are not."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from glassformer.extensions.doctor.library import parameter_tests
from tests.extensions.doctor.library.changed import changed, found
from transformer.analysis.parameters import UNIFORM, is_unstructured, largest_of
from transformer.model.positions import fairseq_table, halves_table, sinusoidal_table


@pytest.mark.parametrize(
    ("change", "number", "places"),
    [
        (lambda m: m.decoder.layers[1].ffn.down_proj.weight[0, :1].fill_(torch.nan), 1,
         r"decoder\.layers\.1\.ffn\.down_proj\.weight .*decoder\.1\.\S+"),  # and where it first shows
        (lambda m: m.decoder.layers[1].ffn.down_proj.weight[0, :1].fill_(torch.inf), 1,
         r"decoder\.layers\.1\.ffn\.down_proj\.weight .*decoder\.1\.\S+"),
        (lambda m: m.encoder.embedding.positions.table[-1].fill_(torch.nan), 64,  # a row that no sentence reads
         r"encoder\.embedding\.positions\.table"),
        (lambda m: m.src_table.mul_(1e38), 0, r"\S+"),  # numbers that grow too large
    ],
)  # fmt: skip
def test_a_value_that_is_no_number_is_found_and_where_it_first_shows(change, number, places, reverse):
    measured = found(changed(reverse, change), "finite").measured
    assert (measured.verdict, measured.number) == ("broken", number)
    assert re.fullmatch(places, " ".join(measured.places))


def uniform(model):
    torch.nn.init.xavier_uniform_(model.encoder.layers[0].self_attn.q_proj.weight)


def one_direction(model):
    weight = model.decoder.layers[1].ffn.up_proj.weight
    weight.copy_(weight[:, :1] @ weight[:1] + 1e-4 * weight)


@pytest.mark.parametrize(
    ("test", "change", "verdict", "place"),
    [
        ("constant", lambda m: m.encoder.layers[1].ffn.up_proj.weight.fill_(0.5), "broken", "encoder.layers.1.ffn"),
        ("positions", lambda m: m.decoder.embedding.positions.table.zero_(), "broken", "decoder"),
        ("initial", uniform, "broken", "encoder.layers.0.self_attn.q_proj.weight"),
        ("rank", one_direction, "look", "decoder.layers.1.ffn.up_proj.weight"),
        ("norm_gains", lambda m: m.decoder.final_norm.weight[:40].zero_(), "broken", "decoder.final_norm.weight"),
        ("zero_rows", lambda m: m.src_table[7].zero_(), "look", "src_table[7]"),
        ("precision", lambda m: m.src_table[5, 5].fill_(1e6), "look", "src_table"),
    ],
)
def test_a_tensor_that_holds_nothing_is_found(test, change, verdict, place, reverse):
    measured = found(changed(reverse, change), test).measured
    assert measured.verdict == verdict
    assert measured.places[0].startswith(place)


def test_rows_that_are_all_alike_were_not_drawn_whatever_their_largest_value(reverse):
    def alike(model):
        signs = model.src_table[:1].sign() * 0.1
        model.src_table.copy_(signs + 1e-3 * model.src_table)

    spoiled = changed(reverse, alike)
    assert float(spoiled.model.src_table.abs().max() / spoiled.model.src_table.pow(2).mean().sqrt()) < 1.8
    assert found(spoiled, "initial").verdict == "well"
    assert found(spoiled, "collapsed_embeddings").verdict == "broken"


@pytest.mark.parametrize("drawn", [True, False])
@pytest.mark.parametrize(("deviation", "verdict"), [(0.02, "look"), (64**-0.5, "look"), (0.134, "well")])
def test_a_layer_is_as_drawn_where_its_one_deviation_is_one_that_programs_draw_with(reverse, deviation, verdict, drawn):
    """What has structure was trained, whatever its deviation."""
    draw = torch.Generator().manual_seed(0)

    def alike(model):
        for one in model.encoder.layers[1].parameters():
            if one.dim() == 2:
                one.copy_(torch.randn(one.shape, generator=draw) if drawn else one)
                one.mul_(deviation / one.pow(2).mean().sqrt())

    assert reverse.config.d_model == 64
    assert found(changed(reverse, alike), "drawn_layers").verdict == (verdict if drawn else "well")


ROWS, WIDTH = 13, 64
PLACES, STEPS = torch.arange(ROWS)[:, None], torch.arange(WIDTH)[None]
FIXED = {
    "sinusoids": sinusoidal_table(ROWS, WIDTH),
    "from the third": fairseq_table(ROWS, WIDTH, first=2),
    "backwards": sinusoidal_table(ROWS, WIDTH).flip(0, 1),
    "eight times": 8 * halves_table(ROWS, WIDTH),
    "cosines": torch.cos(torch.pi * (PLACES + 0.5) * STEPS / ROWS),
    "whole waves": torch.cat([f(2 * torch.pi * PLACES / ROWS * STEPS[:, :32]) for f in (torch.sin, torch.cos)], dim=1),
    "a ramp": torch.linspace(-1, 1, ROWS * WIDTH).view(ROWS, WIDTH),
    "binary digits": ((PLACES >> (STEPS % 4)) & 1).float(),
    "a triangle": torch.ones(ROWS, WIDTH).tril(),
    "slopes": -0.5 * (PLACES - STEPS).abs(),
    "ones": torch.ones(ROWS, WIDTH),
}


@pytest.mark.parametrize("name", FIXED)
def test_a_fixed_table_is_no_matrix_that_was_not_trained(name, reverse):
    def put(model):
        for stack in (model.encoder, model.decoder):
            stack.embedding.positions.table.copy_(FIXED[name])
        model.encoder.layers[0].ffn.down_proj.weight[:, :WIDTH].copy_(FIXED[name].repeat(5, 1)[:WIDTH])

    assert largest_of(FIXED[name]) is None or largest_of(FIXED[name]) >= UNIFORM
    verdicts = {test: found(changed(reverse, put), test).verdict for test in ("initial", "constant")}
    assert set(verdicts.values()) == {"well"}


@pytest.mark.parametrize(("shape", "bound"), [((30, 64), 0.02), ((64, 256), 1.0), ((512, 64), 40.0)])
def test_what_was_drawn_evenly_is_known(shape, bound):
    draw = torch.Generator().manual_seed(1)
    for _ in range(10):
        drawn = (2 * torch.rand(shape, generator=draw) - 1) * bound
        assert largest_of(drawn.half()) < UNIFORM
        assert is_unstructured(torch.randn(shape, generator=draw) * bound)


def test_padding_may_be_zero_and_a_damaged_tensor_is_the_business_of_one_test(reverse):
    zeroed = changed(reverse, lambda model: model.src_table[reverse.config.pad_id].zero_())
    assert found(zeroed, "zero_rows").verdict == "well"
    damaged = changed(reverse, lambda model: model.decoder.layers[1].ffn.up_proj.weight[3].fill_(torch.nan))
    tests = ("precision", "constant", "initial", "rank", "norm_gains", "copies", "zero_rows")
    assert {found(damaged, test).verdict for test in tests} == {"well"}


def test_the_effective_rank_is_roy_and_vetterlis_of_whole_matrices(reverse):
    """As the page of parameters has it: the entropy of the shares of the singular values, by NumPy."""

    def uneven(model):  # its first rows have one direction, so that a part has another rank than the whole
        rows = model.decoder.layers[1].ffn.up_proj.weight[:200]
        rows.copy_(3 * rows[:, :1] @ rows[:1])

    checkpoint = changed(reverse, uneven)
    matrices = {name: one for name, one in checkpoint.model.named_parameters() if one.dim() == 2}
    sizes = {
        name: np.linalg.svd(one.detach().double().numpy(), compute_uv=False)
        for name, one in matrices.items()
        if not name.endswith("table")
    }
    ranks = {name: np.exp(-(one / one.sum() * np.log(one / one.sum())).sum()) for name, one in sizes.items()}
    least = min(ranks, key=ranks.get)
    assert least == "decoder.layers.1.ffn.up_proj.weight"
    measured = found(checkpoint, "rank").measured
    assert measured.number == pytest.approx(ranks[least], rel=1e-6)
    assert "Roy and Vetterli" in measured.why


def test_the_share_of_16_bits_is_said_where_the_file_is_known(reverse):
    assert "in the file, 100% of all values have 16 bits" in found(reverse, "precision").measured.said
    assert "16 bits" not in found(replace(reverse, narrow=None), "precision").measured.said


def test_matrices_that_take_too_long_are_left_out_and_counted(reverse, monkeypatch):
    whole = int(re.search(r"(\d+) of \1 matrices", found(reverse, "rank").measured.said).group(1))
    for most, said in (
        (1.5e6, rf"(?!{whole} )\d+ of {whole} matrices were decomposed"),
        (1, "are too large for this test"),
    ):
        monkeypatch.setattr(parameter_tests, "WORK", most)
        assert re.search(said, found(reverse, "rank").measured.said)
