"""Heads that do nothing, the same as others or the same for every token are found with their place."""

import pytest
import torch

from glassformer.extensions.doctor.library.attention_tests import TESTS
from glassformer.extensions.doctor.library.context import ExaminationContext
from glassformer.extensions.doctor.library.findings import not_applicable
from glassformer.extensions.doctor.library.head_measures import NO_RUN
from tests.extensions.doctor.library.changed import changed, look, verdicts
from transformer.analysis.losses import Samples


def rows(head, checkpoint):
    d_head = checkpoint.config.d_head
    return slice(head * d_head, (head + 1) * d_head)


def test_a_healthy_model_has_no_fault_in_random_texts_either(reverse):
    assert set(verdicts(TESTS, ExaminationContext(reverse, Samples(()))).values()) == {"well"}


def test_a_head_without_values_is_dead_and_a_layer_without_heads_is_broken(reverse):
    def change(model):
        model.encoder.layers[1].self_attn.v_proj.weight[rows(2, reverse)] = 0  # its bias stays, and says nothing

    found = look("dead_heads", changed(reverse, change))
    assert (found.verdict, found.places) == ("look", ("encoder.2.3",))
    assert found.shown.head == 2
    sick = changed(reverse, lambda model: model.decoder.layers[0].cross_attn.out_proj.weight.zero_())
    found = look("dead_heads", sick)
    assert found.verdict == "broken"
    assert found.places == tuple(f"cross.1.{head}" for head in range(1, 5))


def test_equal_heads_are_found_also_if_their_axes_are_turned(reverse):
    turn = torch.linalg.qr(torch.randn(16, 16, generator=torch.manual_seed(1)))[0]

    def change(model):
        attn = model.encoder.layers[0].self_attn
        for projection in (attn.q_proj, attn.k_proj):
            projection.weight[rows(3, reverse)] = turn @ projection.weight[rows(0, reverse)]
            projection.bias[rows(3, reverse)] = turn @ projection.bias[rows(0, reverse)]

    found = look("equal_heads", changed(reverse, change))
    assert (found.verdict, found.places) == ("look", ("encoder.1.1 = encoder.1.4",))
    assert found.number == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize(
    ("part", "named", "other"),
    [("k_proj", "uniform_heads", "collapsed_heads"), ("q_proj", "collapsed_heads", "uniform_heads")],
)
def test_a_head_without_keys_is_uniform_and_one_without_queries_collapsed(reverse, part, named, other):
    def change(model):
        projection = model.encoder.layers[0].self_attn.get_submodule(part)
        projection.weight[rows(1, reverse)] = 0
        if part == "q_proj":
            projection.bias[rows(1, reverse)] = 1

    sick = changed(reverse, change)
    assert look(named, sick).places == ("encoder.1.2",)
    assert look(other, sick).verdict == "well"  # it is named once


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
