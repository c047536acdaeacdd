"""From minimal to complete: each step is a run with the changes that are left, and the last one is the model itself."""

import numpy as np
import pytest
import torch

from glassformer.extensions.effects.ablation_pictures import Climbed, climb, climbed, ladder, parts_of
from glassformer.extensions.what_if.two_runs import reference_ids
from glassformer.runs import loading
from glassformer.runs.open_run import seen
from glassformer.state.link import Link
from glassformer.state.view import View
from tests.extensions.effects.test_cards import plain_losses
from tests.pages.reading import opened
from tests.transformer.tiny import tiny_config
from transformer import run
from transformer.runs.apply_interventions import tap_for
from transformer.runs.interventions import parse, write

SENTENCES = {"reverse": "glass", "addition": "12+34=", "en-fr": "I like coffee."}
OFF = (
    "miswired-all.all.onemap", "nonorm-all.all.all", "noresidual-all.all.all", "scale-all.off.1", "unplaced-all",
    "miswired-all.all.lastlayer", "miswired-all.all.discarded",
)  # fmt: skip


def viewed(checkpoint, source, **link):
    asked = Link(model=checkpoint.name, source=source, view=View().but(matters_panel="ladder"), **link)
    trace = loading.runner().trace(checkpoint, asked.query(checkpoint.content_hash))
    return seen(checkpoint, asked, trace)[0]


def test_parts_are_switched_on_in_this_order_and_those_that_a_model_lacks_are_left_out():
    assert [write([change]) for _, change in parts_of(opened("reverse").config)] == list(OFF)
    bare = tiny_config(norm_kind="none", norm_bias=False, final_norm=False, residual=False, positions="none")
    shallow = tiny_config(n_encoder_layers=1, n_decoder_layers=1, n_heads=1, d_head=12)
    expected = {bare: "Heads Scale Depth Masks", shallow: "Norms Residuals Scale Positions Masks"}
    assert {config: " ".join(str(said) for said, _ in parts_of(config)) for config in expected} == expected


@pytest.mark.parametrize("name", SENTENCES)
def test_each_step_is_a_run_with_the_changes_that_are_left(name):
    checkpoint = opened(name)
    query = checkpoint.query(SENTENCES[name])
    trace = run(checkpoint, query)
    ids = reference_ids(checkpoint, query, checkpoint.card.reference_of(query.source)) or trace.tgt_ids
    steps = climb(checkpoint, trace, ids)
    assert len(steps) == len(OFF) + 1
    for n, (loss, output) in enumerate(steps):
        changes = parse("_".join(OFF[n:]))
        assert loss == pytest.approx(float(plain_losses(checkpoint, trace, ids, changes).mean()), rel=1e-3, abs=1e-3)
        asked = checkpoint.query(SENTENCES[name], interventions=changes, max_new=len(ids))
        assert output == run(checkpoint, asked).output_text
    assert steps[-1][1] == trace.output_text
    assert steps[-1][0] < steps[0][0]


def test_of_an_encoder_alone_it_is_how_far_its_vectors_are_from_the_models():
    checkpoint, trace = opened("palindrome"), opened("palindrome").run("noon")
    steps, source = climb(checkpoint, trace, ()), torch.tensor([trace.src_ids])
    whole = checkpoint.model.encode(source)[0]
    for n, (distance, output) in enumerate(steps):
        now = checkpoint.model.encode(source, tap=tap_for(parse("_".join(OFF[n:])), checkpoint))[0]
        own = [float((b - a).norm() / a.norm()) for a, b in zip(whole, now, strict=True)]
        assert distance == pytest.approx(float(np.mean(own)), rel=1e-3, abs=1e-4)
        assert output == ""
    assert steps[-1][0] == 0


def test_the_runs_own_changes_stay_but_for_those_of_the_same():
    checkpoint = opened("reverse")
    changes = parse("zero-cross.2.1_noresidual-all.all.all")
    trace = run(checkpoint, checkpoint.query("glass", interventions=changes))
    loss, _ = climb(checkpoint, trace, trace.tgt_ids)[-1]
    assert loss == pytest.approx(float(plain_losses(checkpoint, trace, trace.tgt_ids, changes[:1]).mean()), abs=1e-4)


def test_the_picture_has_the_steps_and_the_table_their_outputs_and_what_is_not_finite_is_said():
    checkpoint = opened("reverse")
    scene = climbed(viewed(checkpoint, "glass"))
    plot = ladder.plot(scene)
    table = plot.spec["layout"]["meta"]["table"]["rows"]
    assert [row[1:] for row in table] == [[pytest.approx(loss), output] for loss, output in scene.steps]
    assert [str(row[0]) for row in table][:3] == ["None of them", "+ Heads", "+ Norms"]
    assert [row[2] for row in plot.said.table.rows][-1] == "ssalg"
    broken = [(np.nan, ""), *scene.steps[1:]]
    plot = ladder.plot(Climbed(scene.run, broken))
    assert plot.said.table.rows[0][1] == "NaN"
    assert plot.spec["layout"]["meta"]["table"]["rows"][0][1] is None


def test_a_known_output_is_the_right_one_and_a_large_model_waits_to_be_asked(monkeypatch):
    checkpoint = opened("reverse")
    right = climbed(viewed(checkpoint, "glass", reference="ssalb")).steps
    assert right[-1][0] > 1 > climbed(viewed(checkpoint, "glass")).steps[-1][0]
    monkeypatch.setattr("glassformer.extensions.effects.ablation_pictures.SMALL", 0)
    view = viewed(checkpoint, "glass")
    assert climbed(view) is None
    asked = Link(model=checkpoint.name, source="glass", view=View().but(matters_panel="ladder", climb=True))
    trace = view.trace
    assert climbed(seen(checkpoint, asked, trace)[0]) is not None
