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


def test_a_head_without_keys_is_uniform(reverse):
    def change(model):
        model.encoder.layers[0].self_attn.k_proj.weight[rows(1, reverse)] = 0

    assert look("uniform_heads", changed(reverse, change)).places == ("encoder.1.2",)


def test_what_could_not_be_run_is_not_judged(reverse):
    sick = changed(reverse, lambda model: model.encoder.layers[0].ffn.up_proj.weight.fill_(float("nan")))
    assert look("dead_heads", sick) == not_applicable(NO_RUN)
