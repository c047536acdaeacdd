"""Heads that do nothing, or the same as others, are found; a healthy model has none. Each test changes one thing."""

import pytest
import torch

from tests.transformer.doctor.changed import changed
from tests.transformer.one_stack import alone
from transformer.checkpoint.load import load
from transformer.doctor import attention_tests
from transformer.doctor.findings import not_applicable
from transformer.doctor.patient import Patient
from transformer.trying.samples import Samples

TESTS = {test.name: test.measure for test in attention_tests.TESTS}


@pytest.fixture(scope="module")
def healthy():
    return load("checkpoints/reverse")


def rows(head, checkpoint):
    d_head = checkpoint.config.d_head
    return slice(head * d_head, (head + 1) * d_head)


def look(name, checkpoint, given=None):
    return TESTS[name](Patient(checkpoint, given))


@pytest.mark.parametrize("given", [None, Samples(())], ids=["examples", "random texts"])
def test_a_healthy_model_has_no_fault(healthy, given):
    patient = Patient(healthy, given)
    assert {name: test(patient).verdict for name, test in TESTS.items()} == dict.fromkeys(TESTS, "well")


@pytest.mark.parametrize("part", ["v_proj", "out_proj"])
def test_a_head_without_values_or_output_is_dead(healthy, part):
    def change(model):
        weight = model.encoder.layers[1].self_attn.get_submodule(part)
        if part == "out_proj":
            weight.weight[:, rows(2, healthy)] = 0
        else:
            weight.weight[rows(2, healthy)] = 0  # its bias stays: what it writes says nothing

    found = look("dead_heads", changed(healthy, change))
    assert (found.verdict, found.places) == ("look", ("encoder.2.3",))
    assert found.shown.head == 2


def test_a_layer_without_heads_is_broken(healthy):
    sick = changed(healthy, lambda model: model.decoder.layers[0].cross_attn.out_proj.weight.zero_())
    found = look("dead_heads", sick)
    assert found.verdict == "broken"
    assert found.places == tuple(f"cross.1.{head}" for head in range(1, 5))


def turned(model, healthy, *, by=None):
    attn = model.encoder.layers[0].self_attn
    turn = torch.eye(healthy.config.d_head) if by is None else by
    for projection in (attn.q_proj, attn.k_proj):
        projection.weight[rows(3, healthy)] = turn @ projection.weight[rows(0, healthy)]
        projection.bias[rows(3, healthy)] = turn @ projection.bias[rows(0, healthy)]


@pytest.mark.parametrize("by", [None, torch.linalg.qr(torch.randn(16, 16, generator=torch.manual_seed(1)))[0]])
def test_equal_heads_are_found_also_if_their_axes_are_turned(healthy, by):
    found = look("equal_heads", changed(healthy, lambda model: turned(model, healthy, by=by)))
    assert (found.verdict, found.places) == ("look", ("encoder.1.1 = encoder.1.4",))
    assert found.number == pytest.approx(0, abs=1e-3)


def test_heads_that_share_keys_are_not_equal(tmp_path):
    checkpoint = alone("decoder", tmp_path)
    assert checkpoint.config.n_kv_heads == 1
    assert look("equal_heads", checkpoint).verdict == "well"


def test_a_head_without_keys_is_uniform(healthy):
    def change(model):
        attn = model.encoder.layers[0].self_attn
        attn.k_proj.weight[rows(1, healthy)] = 0

    sick = changed(healthy, change)
    assert look("uniform_heads", sick).places == ("encoder.1.2",)
    assert look("collapsed_heads", sick).verdict == "well"  # it is named once


def test_a_head_without_queries_is_collapsed(healthy):
    def change(model):
        attn = model.encoder.layers[0].self_attn
        attn.q_proj.weight[rows(1, healthy)] = 0
        attn.q_proj.bias[rows(1, healthy)] = 1

    sick = changed(healthy, change)
    assert look("collapsed_heads", sick).places == ("encoder.1.2",)
    assert look("uniform_heads", sick).verdict == "well"


def test_scores_that_are_far_too_large_saturate_the_softmax(healthy):
    def change(model):
        for kind in model.anatomy.kinds:
            for attn in model.attentions(kind):
                attn.q_proj.weight *= 1000

    assert look("saturated_softmax", healthy).number < 0.05
    assert look("saturated_softmax", changed(healthy, change)).verdict == "look"


def test_a_head_that_rests_on_the_first_token_is_named_and_no_fault(healthy):
    def change(model):
        attn = model.decoder.layers[0].self_attn
        bos = model.decoder.embedding(torch.tensor([[healthy.config.bos_id]]), model.target_table)
        read = model.decoder.layers[0].self_attn_residual.norm(bos)[0, 0]
        attn.q_proj.weight[rows(0, healthy)] = 0
        attn.q_proj.bias[rows(0, healthy)] = 1
        attn.k_proj.weight[rows(0, healthy)] = read

    found = look("attention_sinks", changed(healthy, change))
    assert (found.verdict, found.places) == ("well", ("decoder.1.1",))
    assert found.meaning


def test_what_could_not_be_run_is_not_judged(healthy):
    sick = changed(healthy, lambda model: model.encoder.layers[0].ffn.up_proj.weight.fill_(float("nan")))
    assert look("dead_heads", sick) == not_applicable(attention_tests.NO_RUN)
