"""What is asked about cutting, joining and mixing heads has the answer that numpy makes by hand."""

import numpy as np
import pytest

from glassformer.extensions.lessons.library.lesson_files import lessons
from glassformer.extensions.lessons.library.posing import pose
from tests.extensions.lessons.library.posed import SPOKEN, case
from transformer.runs.running import replay

STEPS = lessons()["building"].steps
both = pytest.mark.parametrize(("name", "sentence"), SPOKEN)


def attention_of(run, picked):
    layer = picked["layer"] - 1
    return run.checkpoint.model.decoder.layers[layer].cross_attn, f"decoder.{layer}.cross_attn"


@both
def test_the_query_of_a_head_is_a_slice_of_w_q_times_the_vector(name, sentence):
    run = case(name, sentence)
    posed = pose(STEPS[0], run)
    own, site = attention_of(run, posed.picked)
    found = replay(run.checkpoint, run.trace, [f"{site}.norm", f"{site}.queries"])
    projection = own.q_proj
    whole = found[f"{site}.norm"] @ projection.weight.detach().numpy().T + projection.bias.detach().numpy()
    width = posed.answer.values["width"]
    assert posed.answer.right == "share"
    assert width * posed.picked["n_heads"] == posed.picked["d_model"] == whole.shape[-1]
    for head, queries in enumerate(found[f"{site}.queries"]):
        assert queries == pytest.approx(whole[:, head * width : (head + 1) * width], abs=1e-4)


@both
def test_joining_then_w_o_is_adding_each_heads_own_rows(name, sentence):
    run = case(name, sentence)
    joined, added, reach = (pose(STEPS[n], run) for n in (2, 3, 4))
    own, site = attention_of(run, joined.picked)
    found = replay(run.checkpoint, run.trace, [f"{site}.heads", f"{site}.output"])
    heads, output = found[f"{site}.heads"].astype(np.float64), found[f"{site}.output"]
    weight, bias = (one.detach().double().numpy() for one in (own.out_proj.weight, own.out_proj.bias))
    width, rows = heads.shape[-1], np.concatenate(list(heads), axis=-1)
    assert rows @ weight.T + bias == pytest.approx(output, abs=1e-4)
    assert joined.answer.right == "block"
    assert (joined.answer.values["first"], joined.answer.values["last"]) == (width + 1, 2 * width)
    sums = sum(head @ weight[:, n * width : (n + 1) * width].T for n, head in enumerate(heads)) + bias
    assert sums == pytest.approx(output, abs=1e-4)
    assert added.answer.right == "rounding"
    head = reach.picked["head"] - 1
    without = rows.copy()
    without[:, head * width : (head + 1) * width] = 0
    changed = np.abs(without @ weight.T - rows @ weight.T).max(axis=0) > 1e-9
    assert reach.answer.right == "all"
    assert reach.answer.values["changed"] == changed.sum()
