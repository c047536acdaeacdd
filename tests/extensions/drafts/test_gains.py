"""What int8 gains is measured by writing as drafts do, rounded only where it says so."""

import pytest
import torch

from tests.transformer.analysis.test_speed_gains import LARGE
from tests.transformer.tiny import DECODER, tiny_config
from transformer.analysis import speed_gains
from transformer.analysis.speed_gains import measuring
from transformer.runs.array_records import whole


@pytest.mark.parametrize("features", [{}, LARGE, DECODER | LARGE])
def test_each_way_writes_as_many_tokens_and_rounds_only_where_it_says_so(features, monkeypatch):
    torch.manual_seed(0)
    n_threads, rounded = torch.get_num_threads(), []
    real = torch.quantize_per_channel
    monkeypatch.setattr(torch, "quantize_per_channel", lambda one, *how: rounded.append(one.shape) or real(one, *how))
    made = speed_gains.Steps(tiny_config(**features), n_source=5, n_written=7)
    torch.set_num_threads(n_threads)
    assert made.eager() == 7
    assert made.as_drafts(int8=False)() == 7
    assert not rounded
    assert made.as_drafts(int8=True)() == 7
    assert bool(rounded) == ("d_ff" in features)


@pytest.mark.deep
def test_int8_is_measured_without_a_compiler(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    assert whole(measuring(tiny_config(**LARGE))).int8 > 0
