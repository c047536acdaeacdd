"""A model on another device gives the same as on the processor, in each kind of work.

The device is a stand-in that computes as the processor does (`stand_in.py`), so results are equal to the last bit,
and a tensor that was left on the wrong side is an error. On a GPU results differ by rounding: those tests exist where
torch finds one.
"""

import numpy as np
import pytest
import torch

from tests.transformer.devices import OTHER, TEXT, same
from tests.transformer.devices import of_name as of_name
from tests.transformer.devices import pair as pair
from tests.transformer.devices import refused_without_cuda as refused_without_cuda
from tests.transformer.featured import FEATURED
from tests.transformer.stand_in import DEVICE
from transformer import Beam, Sampling
from transformer.analysis import mask_checks, neurons, one_weight, positions, stream
from transformer.analysis.head_statistics import output_projections
from transformer.analysis.hidden_pieces import hide
from transformer.analysis.logit_lens import logit_lens
from transformer.checkpoint import free_memory
from transformer.checkpoint.free_memory import device_of
from transformer.checkpoint.load import load
from transformer.errors import CheckpointError
from transformer.runs.running import each_layer, replay, run_batch, run_together
from transformer.runs.teacher_forcing import read_at_once, score
from transformer.tap import sites


def test_it_is_the_same_checkpoint_and_every_way_of_decoding_gives_the_same(pair):
    here, there = pair
    assert (here.device.type, there.device) == ("cpu", DEVICE)
    assert there == here
    assert not there.model.training
    assert not any(parameter.requires_grad for parameter in there.model.parameters())
    ways = [{}, {"forced": (5, 6)}, {"decoding": Beam(size=3)}, {"decoding": Sampling(seed=3, top_p=0.9)}]
    for how in ways if here.model.anatomy.writes else ways[:1]:
        same(pair, lambda one, how=how: one.run(one.query(TEXT, max_new=4, **how)))
    queries = [{"source": TEXT}, {"source": OTHER}, {"source": TEXT, "decoding": Sampling(seed=1)}]
    for together in (run_batch, run_together):
        same(pair, lambda one, together=together: list(together(one, [one.query(max_new=4, **q) for q in queries])))
    if here.model.anatomy.writes:
        same(pair, lambda one: score(one, TEXT, OTHER))


def looked_at(one):
    """All that is seen of a run and of the parameters."""
    model, config, kinds = one.model, one.config, one.model.anatomy.kinds
    trace = one.run(one.query(TEXT, max_new=5))
    found, src, read = replay(one, trace, list(sites(config))), [trace.src_ids], [trace.read_ids]
    (large,) = run_together(one, [trace.query], most_map_bytes=0)
    yield trace, found, mask_checks.batch_masks(model, src * 2, read * 2)
    for kind in kinds:
        yield each_layer(one, large, kind, lambda maps, _: maps), output_projections(model, kind)
        yield one_weight.walk(found, model, kind=kind, layer=1, head=0, query=2)
    if config.pad_id is not None:
        yield mask_checks.check_padding(model, trace.src_ids, trace.read_ids, n_pads=2)
    stack = model.anatomy.stacks[0].name
    yield neurons.columns(model, stack, 0)
    if config.placing.adds == "table":
        yield positions.own_table(model, stack)
    if config.placing.adds == "bias":
        yield positions.distance_bias(model, stack, most=5)
    if model.anatomy.fills:
        yield hide(model, (5, 6, 7, 8), (1, 2), 4)
    if model.anatomy.writes:
        yield logit_lens(one, trace), read_at_once(one, trace.query, trace.tgt_ids, ["decoder.output"])
        yield mask_checks.check_causality(model, src, read, sentence=0, place=1, piece_id=7)
        yield neurons.direct_effect(model, 1, 3, found, token=1)
        for at in stream.norm_places(config, "decoder"):
            yield stream.normed(found, model, "decoder", at, n_tokens=3)


def test_what_is_seen_of_runs_and_parameters_is_the_same(pair):
    same(pair, lambda one: list(looked_at(one)))


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


def test_what_is_not_there_is_refused_in_one_sentence(checkpoint_folder, monkeypatch, refused_without_cuda):
    for name, why in (("cuda", "no CUDA device"), ("cuda:", "must be"), ("", "must be")):
        with pytest.raises(CheckpointError, match=why) as error:
            load(checkpoint_folder, device=name)
        assert "\n" not in str(error.value)
    assert load(checkpoint_folder, device="auto").device.type == "cpu"
    assert refused_without_cuda("translate", "x")  # a command that loads has the option
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
    assert free_memory.fits(1200, gpu)
    assert not free_memory.fits(1201, gpu)
    with pytest.raises(CheckpointError, match=r"m \(cuda:0\): loading it needs 1,201 bytes .* only 1,200 are free"):
        free_memory.check_bytes(1201, label="m", device=gpu)


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
