"""Maps hold each row as its step computed it, for each change of the wiring, beside the same in NumPy."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tests.extensions.what_if.interventions.plain import Plain, Wires
from tests.extensions.what_if.interventions.test_wiring import ONE, WRITTEN, beginning
from tests.extensions.what_if.interventions.wired import CASES, model_of
from transformer.model.taps import Recorder
from transformer.runs import recording_pass
from transformer.runs.apply_interventions import tap_for
from transformer.runs.interventions import parse
from transformer.runs.reading import WEIGHTS


def maps_by_steps(model, texts, source, start):
    """The maps by place [H, Q, K]: each row of the decoder as when its token was the last that it had read."""
    wires = Wires()
    for text in texts:
        CASES[text][1](wires)
    plain, read, rows = Plain(model, wires), [*start, *WRITTEN], {}
    if not model.anatomy.writes:
        plain.memory(source)
        return plain.maps
    for n in range(1, len(read) + 1):
        plain.log_probs(source, read[:n])
        for name, maps in plain.maps.items():
            width = len(source) if "cross" in name else len(read)
            rows.setdefault(name, []).append(np.pad(maps[:, -1], ((0, 0), (0, max(width - maps.shape[-1], 0)))))
    return {name: np.stack(rows[name], 1) if name.startswith("decoder") else plain.maps[name] for name in rows}


@torch.inference_mode()
def recorded_maps(model, tap, source, start):
    """The same from the recording pass; and what one pass over the whole output would give."""
    ids = torch.tensor([source])
    memory, seen = recording_pass.read_source(model, ids, [WEIGHTS], tap=tap)
    if not model.anatomy.writes:
        return seen, seen
    read, mask, whole = torch.tensor([[*start, *WRITTEN]]), model.source_mask(ids), Recorder([WEIGHTS])
    model.decode(read, memory, mask, tap=tap.also(whole))
    return seen | recording_pass.read_target(model, read, memory, mask, [WEIGHTS], tap=tap), seen | whole.values


@pytest.mark.parametrize(("text", "model"), ONE)
def test_a_map_holds_each_row_as_its_step_computed_it(text, model):
    """Also where one pass over the whole output gives other rows; then nothing is said to be causal."""
    one, _, source, start = beginning(model_of(model))
    tap = tap_for(parse(text), SimpleNamespace(config=one.config, model=one))
    found, whole = recorded_maps(one, tap, source, start)
    expected_maps = maps_by_steps(one, [text], source, start)
    assert {site.removesuffix(".weights") for site in found} == expected_maps.keys()
    differs = False
    for site, values in found.items():
        np.testing.assert_allclose(values[0], expected_maps[site.removesuffix(".weights")], atol=1e-10, rtol=0)
        differs = differs or bool((values - whole[site]).abs().max() > 1e-6)
    assert not (differs and tap.causal)
    assert differs or text not in ("causal-off", "causal-peek", "causal-transposed")
