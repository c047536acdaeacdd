"""Heads that do nothing, or the same as others, are found; a healthy model has none. Each test changes one thing."""

import pytest
import torch

from glassformer.extensions.doctor.library.attention_tests import TESTS
from glassformer.extensions.doctor.library.context import ExaminationContext
from glassformer.extensions.doctor.library.findings import not_applicable
from glassformer.extensions.doctor.library.head_measures import NO_RUN
from tests.extensions.doctor.library.changed import changed, look, verdicts
from tests.transformer.one_stack import alone
from transformer.trying.losses import Samples


def rows(head, checkpoint):
    d_head = checkpoint.config.d_head
    return slice(head * d_head, (head + 1) * d_head)


@pytest.mark.parametrize("given", [None, Samples(())], ids=["examples", "random texts"])
def test_a_healthy_model_has_no_fault(reverse, given):
    assert set(verdicts(TESTS, ExaminationContext(reverse, given)).values()) == {"well"}


@pytest.mark.parametrize("part", ["v_proj", "out_proj"])
def test_a_head_without_values_or_output_is_dead(reverse, part):
    def change(model):
        weight = model.encoder.layers[1].self_attn.get_submodule(part)
        if part == "out_proj":
            weight.weight[:, rows(2, reverse)] = 0
        else:
            weight.weight[rows(2, reverse)] = 0  # its bias stays: what it writes says nothing

    found = look("dead_heads", changed(reverse, change))
    assert (found.verdict, found.places) == ("look", ("encoder.2.3",))
    assert found.shown.head == 2


def test_a_layer_without_heads_is_broken(reverse):
    sick = changed(reverse, lambda model: model.decoder.layers[0].cross_attn.out_proj.weight.zero_())
    found = look("dead_heads", sick)
    assert found.verdict == "broken"
    assert found.places == tuple(f"cross.1.{head}" for head in range(1, 5))


def turned(model, reverse, *, by=None):
    attn = model.encoder.layers[0].self_attn
    turn = torch.eye(reverse.config.d_head) if by is None else by
    for projection in (attn.q_proj, attn.k_proj):
        projection.weight[rows(3, reverse)] = turn @ projection.weight[rows(0, reverse)]
        projection.bias[rows(3, reverse)] = turn @ projection.bias[rows(0, reverse)]


@pytest.mark.parametrize("by", [None, torch.linalg.qr(torch.randn(16, 16, generator=torch.manual_seed(1)))[0]])
def test_equal_heads_are_found_also_if_their_axes_are_turned(reverse, by):
    found = look("equal_heads", changed(reverse, lambda model: turned(model, reverse, by=by)))
    assert (found.verdict, found.places) == ("look", ("encoder.1.1 = encoder.1.4",))
    assert found.number == pytest.approx(0, abs=1e-3)


def test_heads_that_share_keys_are_not_equal(tmp_path):
    checkpoint = alone("decoder", tmp_path)
    assert checkpoint.config.n_kv_heads == 1
    assert look("equal_heads", checkpoint).verdict == "well"


def test_a_head_without_keys_is_uniform(reverse):
    def change(model):
        attn = model.encoder.layers[0].self_attn
        attn.k_proj.weight[rows(1, reverse)] = 0

    sick = changed(reverse, change)
    assert look("uniform_heads", sick).places == ("encoder.1.2",)
    assert look("collapsed_heads", sick).verdict == "well"  # it is named once


def test_a_head_without_queries_is_collapsed(reverse):
    def change(model):
        attn = model.encoder.layers[0].self_attn
        attn.q_proj.weight[rows(1, reverse)] = 0
        attn.q_proj.bias[rows(1, reverse)] = 1

    sick = changed(reverse, change)
    assert look("collapsed_heads", sick).places == ("encoder.1.2",)
    assert look("uniform_heads", sick).verdict == "well"


def test_scores_that_are_far_too_large_saturate_the_softmax(reverse):
    def change(model):
        for kind in model.anatomy.kinds:
            for attn in model.attentions(kind):
                attn.q_proj.weight *= 1000

    assert look("saturated_softmax", reverse).number < 0.05
    assert look("saturated_softmax", changed(reverse, change)).verdict == "look"


def test_a_head_that_rests_on_the_first_token_is_named_and_no_fault(reverse):
    def change(model):
        attn = model.decoder.layers[0].self_attn
        bos = model.decoder.embedding(torch.tensor([[reverse.config.bos_id]]), model.target_table)
        read = model.decoder.layers[0].self_attn_residual.norm(bos)[0, 0]
        attn.q_proj.weight[rows(0, reverse)] = 0
        attn.q_proj.bias[rows(0, reverse)] = 1
        attn.k_proj.weight[rows(0, reverse)] = read

    found = look("attention_sinks", changed(reverse, change))
    assert (found.verdict, found.places) == ("well", ("decoder.1.1",))
    assert found.meaning


def test_what_could_not_be_run_is_not_judged(reverse):
    sick = changed(reverse, lambda model: model.encoder.layers[0].ffn.up_proj.weight.fill_(float("nan")))
    assert look("dead_heads", sick) == not_applicable(NO_RUN)
