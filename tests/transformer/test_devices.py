"""A model on another device gives the same: each kind of work there and on the processor, compared.

The device is a stand-in that computes as the processor does (`stand_in.py`), so results are equal to the last bit,
and a tensor that was left on the wrong side is an error. On a GPU results differ by rounding: those tests exist where
torch finds one.
"""

import dataclasses
from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest
import torch

from glassformer.extensions.corpus.library.measuring import measure
from glassformer.extensions.corpus.library.tables import Line, Options
from glassformer.extensions.doctor.library.examination import examine
from glassformer.extensions.effects.attribution import gradients
from glassformer.extensions.effects.attribution.asked import ask_each
from glassformer.extensions.effects.attribution.hiding import hiding
from glassformer.extensions.effects.attribution.logit import contributions
from glassformer.extensions.effects.attribution.weighed import weigh
from glassformer.extensions.what_if.analysis.head_effects import head_effects
from glassformer.extensions.what_if.interventions import KINDS
from tests.extensions.what_if.interventions.of_kinds import example
from tests.transformer.featured import FEATURED, featured, filling
from tests.transformer.stand_in import DEVICE
from transformer import Beam, Sampling
from transformer.__main__ import main
from transformer.analysis import distance_bias, mask_checks, neurons, one_weight, parameters, position_study, stream
from transformer.analysis.at_once import read_at_once
from transformer.analysis.head_norms import output_projections
from transformer.analysis.hidden_pieces import hide
from transformer.analysis.logit_lens import logit_lens
from transformer.analysis.progress import whole
from transformer.analysis.spectra import spectrum
from transformer.checkpoint import room
from transformer.checkpoint.device import device_of
from transformer.checkpoint.load import load
from transformer.errors import CheckpointError, QueryError
from transformer.runs.by_layer import each_layer
from transformer.runs.replay import replay
from transformer.runs.running import run_batch
from transformer.runs.teacher_forcing import score
from transformer.runs.together import run_together
from transformer.runs.trace import Trace
from transformer.tap import sites

TEXT, OTHER = "ba lo mi ta", "mi ta ba"


@pytest.fixture(scope="module")
def of_name(tmp_path_factory, checkpoint_folder):
    """Makes one checkpoint on the processor and on the other device, by the model's name."""

    @cache
    def made(name):
        folder = tmp_path_factory.mktemp("devices")
        if name == "two vocabularies":
            here = load(checkpoint_folder)
        else:
            here = filling(folder) if name == "filling" else featured(name, folder)
        return here, load(here.folder, device=DEVICE)

    return made


@pytest.fixture(params=[*FEATURED, "two vocabularies", "filling"])
def pair(request, of_name):
    """The same of every model."""
    return of_name(request.param)


def plain(value):
    """A result as plain values, arrays bit by bit; how long it took is left out."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tobytes()
    if isinstance(value, torch.Tensor):
        return plain(value.numpy())
    if isinstance(value, BaseException):
        return type(value), str(value)
    if dataclasses.is_dataclass(value):
        return [
            (one.name, plain(getattr(value, one.name))) for one in dataclasses.fields(value) if one.name != "seconds"
        ]
    if isinstance(value, Mapping):
        return [(key, plain(one)) for key, one in value.items()]
    return [*map(plain, value)] if isinstance(value, list | tuple) else value


def same(pair, work):
    """Some work gives the same on both devices."""
    here, there = map(work, pair)
    assert plain(there) == plain(here)


def test_it_is_the_same_checkpoint(pair):
    here, there = pair
    assert (here.device.type, there.device) == ("cpu", DEVICE)
    assert there == here
    assert not here.model.training
    assert not any(parameter.requires_grad for parameter in there.model.parameters())


def test_every_way_of_decoding(pair):
    ways = [{}, {"forced": (5, 6)}, {"decoding": Beam(size=3)}, {"decoding": Sampling(seed=3, top_p=0.9)}]
    for how in ways if pair[0].model.anatomy.writes else ways[:1]:
        same(pair, lambda one, how=how: one.run(one.query(TEXT, max_new=4, **how)))
    queries = [{"source": TEXT}, {"source": OTHER}, {"source": TEXT, "decoding": Sampling(seed=1)}]
    for together in (run_batch, run_together):
        same(pair, lambda one, together=together: list(together(one, [one.query(max_new=4, **q) for q in queries])))
    if pair[0].model.anatomy.writes:
        same(pair, lambda one: score(one, TEXT, OTHER))


def test_runs_are_looked_at_more_closely(pair):
    def work(one):
        trace = one.run(one.query(TEXT, max_new=5))
        found = replay(one, trace, list(sites(one.config)))
        (large,) = run_together(one, [trace.query], most_map_bytes=0)
        layers = [each_layer(one, large, kind, lambda maps, _: maps) for kind in trace.kinds]
        walks = [one_weight.walk(found, one.model, kind=kind, layer=1, head=0, query=2) for kind in trace.kinds]
        checks = [mask_checks.batch_masks(one.model, [trace.src_ids] * 2, [trace.read_ids] * 2)]
        checks += [
            mask_checks.record_attention(one.model, [trace.src_ids], [trace.read_ids], kind=kind, layer=0)
            for kind in trace.kinds
        ]
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
            mask_checks.check_causality(
                one.model, [trace.src_ids], [trace.read_ids], sentence=0, place=1, piece_id=7
            ),
            read_at_once(one, trace.query, trace.tgt_ids, ["decoder.output"]),
            neurons.direct_effect(one.model, 1, 3, found, token=1),
            [
                stream.normed(found, one.model, "decoder", at, n_tokens=3)
                for at in stream.norm_places(one.config, "decoder")
            ],
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


def test_a_corpus_is_measured_the_same(pair):
    lines = [Line(1, TEXT, OTHER), Line(2, OTHER, TEXT), Line(3, "ke lo su ta", "ba")]
    for decode in (False, True) if pair[0].model.anatomy.writes else (False,):
        here, there = (measure(one, lines, Options(decode=decode, effect=not decode, vectors=2)) for one in pair)
        for table in ("sentences", "heads", "vectors"):
            assert getattr(there, table).equals(getattr(here, table)), table
        assert not any(here.sentences["problem"].to_pylist())


@pytest.mark.parametrize("name", ["windows", "two vocabularies"])
def test_every_change_gives_the_same(name, of_name):
    """A change that makes no sense in a model is refused there with the same words."""
    pair = of_name(name)
    found = [[attempt(one, kind) for kind in KINDS.values()] for one in pair]
    assert plain(found[1]) == plain(found[0])
    assert sum(isinstance(one, Trace) for one in found[0]) > len(KINDS) / 2


def attempt(checkpoint, kind):
    change = example(kind, checkpoint, TEXT)
    try:
        return checkpoint.run(checkpoint.query(TEXT, max_new=2, interventions=(change,)))
    except QueryError as error:
        return error


def test_the_doctor_finds_the_same(of_name):
    found = [examine(one).findings for one in of_name("windows")]
    assert plain([one.measured for one in found[1]]) == plain([one.measured for one in found[0]])
    assert not any("torch reported" in str(one.measured.said) for one in found[1])


def test_the_stand_in_is_as_strict_as_a_gpu():
    there, here = torch.ones(3, device=DEVICE), torch.ones(3)
    for wrong in (
        lambda: there + here,
        lambda: torch.cat([there, here]),
        lambda: here[there.long()],
        lambda: there.numpy(),
        lambda: np.asarray(there),
        lambda: there.exponential_(generator=torch.Generator()),
    ):
        with pytest.raises((RuntimeError, TypeError), match="processor"):
            wrong()
    assert (there + torch.tensor(2.0)).tolist() == [3.0, 3.0, 3.0]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("cuda", "no CUDA device"),
        ("cuda:1", "no CUDA device"),
        ("gpu", "must be"),
        ("cuda:", "must be"),
        ("", "must be"),
    ],
)
def test_what_is_not_there_is_refused_in_one_sentence(checkpoint_folder, monkeypatch, name, why):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(CheckpointError, match=why) as error:
        load(checkpoint_folder, device=name)
    assert str(error.value).count("\n") == 0
    assert load(checkpoint_folder, device="auto").device.type == "cpu"


def test_gpus_are_numbered(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert [str(device_of(name)) for name in ("auto", "cuda", "cuda:1", "cpu")] == ["cuda", "cuda", "cuda:1", "cpu"]
    with pytest.raises(CheckpointError, match="there are 2 GPUs"):
        device_of("cuda:2")


def test_a_gpu_without_room_is_said(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (1000, 9999))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 300)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 100)
    gpu = torch.device("cuda", 0)
    assert room.fits(1200, gpu)
    assert not room.fits(1201, gpu)
    with pytest.raises(CheckpointError, match=r"on cuda:0 loading it needs 1,201 bytes .* only 1,200 are free"):
        room.check_bytes(1201, label="m", device=gpu)


def test_every_command_that_loads_has_the_option(checkpoint_folder, monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    file = str(checkpoint_folder / "config.json")
    more = {"translate": ["x"], "evaluate": ["--pairs", file], "sentences": [file], "doctor": [],
            "picture": ["x", "--out", "x.svg"], "corpus": ["--pairs", file, "--out", "x"]}  # fmt: skip
    for command, arguments in more.items():
        assert main([command, str(checkpoint_folder), *arguments, "--device", "cuda"]) == 2
        assert "torch finds no CUDA device here" in capsys.readouterr().err, command


if torch.cuda.is_available():  # where there is no GPU there is nothing to test, and so no test

    @pytest.mark.parametrize("name", [*FEATURED, "two vocabularies", "filling"])
    def test_a_gpu_gives_the_same_but_for_rounding(name, of_name):
        here, _ = of_name(name)
        there = load(here.folder, device="cuda")
        mine, found = (one.run(one.query(TEXT, max_new=4)) for one in (here, there))
        assert found.tgt_ids == mine.tgt_ids
        np.testing.assert_allclose(found.log_probs, mine.log_probs, rtol=0, atol=1e-4)
        for kind in mine.kinds:
            np.testing.assert_allclose(found.maps(kind), mine.maps(kind), rtol=0, atol=1e-5)
        changed = [[attempt(one, kind) for kind in KINDS.values()] for one in (here, there)]
        assert [isinstance(one, Trace) for one in changed[1]] == [isinstance(one, Trace) for one in changed[0]]
