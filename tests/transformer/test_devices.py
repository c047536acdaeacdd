"""A model on another device gives the same: each kind of work there and on the processor, compared.

The device is a stand-in that computes as the processor does (`stand_in.py`), so results are equal to the last bit,
and a tensor that was left on the wrong side is an error. On a GPU results differ by rounding: those tests exist where
torch finds one.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np
import pytest
import torch

from tests.transformer.featured import FEATURED, featured, filling
from tests.transformer.runs.interventions.of_kinds import example
from tests.transformer.stand_in import DEVICE
from transformer import Beam, Sampling
from transformer.analysis import distance_bias, mask_checks, neurons, one_weight, parameters, position_study, stream
from transformer.analysis.at_once import read_at_once
from transformer.analysis.attribution import gradients
from transformer.analysis.attribution.asked import ask_each
from transformer.analysis.attribution.hiding import hiding
from transformer.analysis.attribution.logit import contributions
from transformer.analysis.attribution.weighed import weigh
from transformer.analysis.head_effects import head_effects
from transformer.analysis.head_norms import output_projections
from transformer.analysis.hidden_pieces import hide
from transformer.analysis.logit_lens import logit_lens
from transformer.analysis.progress import whole
from transformer.analysis.spectra import spectrum
from transformer.checkpoint.load import load
from transformer.doctor.examination import examine
from transformer.errors import CheckpointError, QueryError
from transformer.lessons.lesson_files import lessons
from transformer.lessons.survey import survey
from transformer.runs.by_layer import each_layer
from transformer.runs.interventions import KINDS
from transformer.runs.replay import replay
from transformer.runs.running import run_batch
from transformer.runs.teacher_forcing import score
from transformer.runs.together import run_together
from transformer.tap import sites

TEXT, OTHER = "ba lo mi ta", "mi ta ba"
GPUS = ["cuda"] if torch.cuda.is_available() else []  # no test is left out: without a GPU there are none


@pytest.fixture(scope="module", params=[*FEATURED, "two vocabularies", "filling"])
def pair(request, tmp_path_factory, checkpoint_folder):
    """One checkpoint on the processor and on the other device."""
    folder = tmp_path_factory.mktemp("devices")
    if request.param == "two vocabularies":
        here = load(checkpoint_folder)
    else:
        here = filling(folder) if request.param == "filling" else featured(request.param, folder)
    there = load(here.folder, device=DEVICE)
    assert (here.device.type, there.device) == ("cpu", DEVICE)
    assert there == here
    return here, there


def plain(value):
    """A result as plain values, arrays bit by bit; how long it took is left out."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tobytes()
    if isinstance(value, torch.Tensor):
        return plain(value.numpy())
    if isinstance(value, BaseException):
        return type(value), str(value)
    if dataclasses.is_dataclass(value):
        return [(one.name, plain(getattr(value, one.name))) for one in dataclasses.fields(value) if one.name != "seconds"]
    if isinstance(value, Mapping):
        return [(key, plain(one)) for key, one in value.items()]
    return [*map(plain, value)] if isinstance(value, list | tuple) else value


def same(pair, work):
    """What some work gives, on both devices the same; a refusal is a result, too."""

    def attempt(checkpoint):
        try:
            return work(checkpoint)
        except QueryError as error:
            return error

    here, there = map(attempt, pair)
    assert plain(there) == plain(here)
    return here


def test_every_way_of_decoding(pair):
    for how in ({}, {"forced": (5, 6)}, {"decoding": Beam(size=3)}, {"decoding": Sampling(seed=3, top_p=0.9)}):
        same(pair, lambda one, how=how: one.run(one.query(TEXT, max_new=6, **how)))
    queries = [{"source": TEXT}, {"source": OTHER}, {"source": TEXT, "decoding": Sampling(seed=1)}]
    for together in (run_batch, run_together):
        same(pair, lambda one, together=together: list(together(one, [one.query(max_new=6, **q) for q in queries])))
    same(pair, lambda one: score(one, TEXT, OTHER if one.model.anatomy.writes else None))


@pytest.mark.parametrize("word", KINDS)
def test_every_change(pair, word):
    change = example(KINDS[word], pair[0], TEXT)
    same(pair, lambda one: one.run(one.query(TEXT, max_new=4, interventions=(change,))))


def test_runs_are_looked_at_more_closely(pair):
    def work(one):
        trace = one.run(one.query(TEXT, max_new=5))
        found = replay(one, trace, list(sites(one.config)))
        (large,) = run_together(one, [trace.query], most_map_bytes=0)
        layers = [each_layer(one, large, kind, lambda maps, _: maps) for kind in trace.kinds]
        walks = [
            one_weight.walk(found, one.model, kind=kind, layer=1, head=0, query=2) for kind in trace.kinds
        ]
        checks = [mask_checks.batch_masks(one.model, [trace.src_ids] * 2, [trace.read_ids] * 2)]
        checks += [mask_checks.record_attention(one.model, [trace.src_ids], [trace.read_ids], kind=kind, layer=0) for kind in trace.kinds]
        if one.config.pad_id is not None:
            checks.append(mask_checks.check_padding(one.model, trace.src_ids, trace.read_ids, n_pads=2))
        return trace, found, layers, walks, checks, head_effects(one, trace)

    same(pair, work)


def test_what_matters_to_a_decoder(pair):
    if not pair[0].model.anatomy.writes:
        return

    def work(one):
        trace = one.run(one.query(TEXT, max_new=5))
        asked, found = ask_each(one, trace), replay(one, trace, ["decoder.*"])
        return (
            logit_lens(one, trace),
            [contributions(asked[-1], (5, 6)), weigh(asked[-1]), whole(hiding(asked))],
            gradients.input_times_gradient(asked[-1]),
            whole(gradients.integrating(asked[-1], baseline="mean", n_points=4)),
            mask_checks.check_causality(one.model, [trace.src_ids], [trace.read_ids], sentence=0, place=1, piece_id=7),
            read_at_once(one, trace.query, trace.tgt_ids, ["decoder.output"]),
            neurons.direct_effect(one.model, 1, 3, found, token=1),
            [stream.normed(found, one.model, "decoder", at, n_tokens=3) for at in stream.norm_places(one.config, "decoder")],
        )

    same(pair, work)


def test_what_the_parameters_say(pair):
    def work(one):
        model, kind, stack = one.model, one.model.anatomy.kinds[0], one.model.anatomy.stacks[0].name
        first = model.src_table.detach()
        found = [parameters.statistics(model), parameters.histogram(first), spectrum(first)]
        found += [output_projections(model, kind), neurons.columns(model, stack, 0)]
        if one.config.placing.adds == "table":
            found.append(position_study.own_table(model, stack))
        if one.config.placing.adds == "bias":
            found.append(distance_bias.distance_bias(model, stack, most=5))
        return found

    same(pair, work)


def test_hidden_pieces(pair):
    if pair[0].model.anatomy.fills:
        same(pair, lambda one: hide(one.model, (5, 6, 7, 8), (1, 2), 4))
        same(pair, lambda one: head_effects(one, one.run(TEXT), hidden=(1, 4)))


def test_the_doctor_finds_the_same(pair):
    reports = [examine(one) for one in pair]
    assert [(one.test, plain(one.measured)) for one in reports[1].findings] == [
        (one.test, plain(one.measured)) for one in reports[0].findings
    ]
    assert not any("torch reported" in str(one.measured.said) for one in reports[1].findings)
