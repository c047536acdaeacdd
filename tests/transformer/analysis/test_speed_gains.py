"""What a compiler and int8 gain is measured on right steps, alone, and ends when nobody waits."""

import shutil
from contextlib import closing

import pytest
import torch

from tests.transformer.featured import FEATURED
from tests.transformer.tiny import DECODER, ENCODER, ONE_STACK, random_ids, tiny_config, tiny_model
from transformer.analysis import speed_gains
from transformer.analysis.speed_gains import Gains, measuring
from transformer.errors import QueryError
from transformer.runs.array_records import whole

LARGE = {"d_model": 64, "d_ff": 2048, "n_heads": 4}  # has matrices that are worth rounding


@pytest.mark.parametrize("name", ["", "halves", "fairseq", "own decoder", "rotary"])
def test_a_cache_that_is_there_from_the_beginning_gives_the_same_logits(name):
    model, n = tiny_model(**(ONE_STACK if name == "rotary" else {}) | FEATURED.get(name, {})), 6
    ids = random_ids(1, n)
    memory = model.encode(random_ids(1, 5)) if model.anatomy.reads else None
    expected = model.project(model.decode(ids, memory))
    cache, places = speed_gains.whole_cache(model, n), torch.arange(n)
    for place in range(n):
        mask = (places <= place).view(1, 1, 1, -1)
        found = speed_gains.step(model, ids[:, place : place + 1], memory, mask, cache)
        torch.testing.assert_close(found[:, 0], expected[:, place])


def test_without_a_compiler_the_rest_is_measured(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    found = whole(measuring(tiny_config()))
    assert (found.problem, found.compiled, found.pays_after) == (speed_gains.NO_COMPILER, None, None)
    assert found.eager > 0


@pytest.mark.parametrize("features", [{}, DECODER])
def test_tokens_are_written_also_where_nothing_writes_drafts(monkeypatch, features):
    made = speed_gains.Steps(tiny_config(**features), n_source=5, n_written=7)
    assert made.eager() == 7
    monkeypatch.setattr(speed_gains, "drafters", lambda: ())
    assert made.as_drafts(int8=False) is made.as_drafts(int8=True) is None


@pytest.mark.parametrize("name", ["relative", "windows"])
def test_a_model_whose_steps_have_no_one_shape_is_not_compiled(name, monkeypatch):
    monkeypatch.setattr(speed_gains, "has_compiler", lambda: True)
    n_threads = torch.get_num_threads()
    found = speed_gains.measure(tiny_config(**ONE_STACK | FEATURED[name]))
    torch.set_num_threads(n_threads)
    assert found.problem == speed_gains.NO_ONE_SHAPE
    assert found.eager > 0


@pytest.mark.deep
def test_a_model_is_compiled():
    found = whole(measuring(tiny_config()))
    assert found.problem == ""
    assert min(found.compiled, found.compile_seconds) > 0


def test_one_is_measured_at_a_time_and_what_nobody_waits_for_ends_with_all_that_it_started(monkeypatch):
    begun, begin = [], speed_gains._begin
    monkeypatch.setattr(speed_gains, "_begin", lambda *told: begun.append(begin(*told)) or begun[-1])
    with closing(measuring(tiny_config())) as first, closing(measuring(tiny_config())) as second:
        for _ in range(3):
            next(first)
        assert begun[0].poll() is None
        assert next(second).done == 0
        assert speed_gains._ONE_AT_A_TIME.locked()
    assert begun[0].poll() is not None
    assert not speed_gains._ONE_AT_A_TIME.locked()
    with closing(measuring(tiny_config())) as measurement:  # and the next can begin at once
        next(measurement)
        assert len(begun) == 2


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [("sys.executable", shutil.which("false"), "ended without a result"), ("MOST_SECONDS", 0.3, "took longer than"),
     ("MOST_PARAMETERS", 10, "too large to be measured")],
)  # fmt: skip
def test_what_cannot_be_measured_is_said_in_a_sentence(monkeypatch, name, value, message):
    with pytest.raises(QueryError, match="writes nothing"):
        next(measuring(tiny_config(**ENCODER)))
    monkeypatch.setattr(f"transformer.analysis.speed_gains.{name}", value)
    with pytest.raises(QueryError, match=message):
        whole(measuring(tiny_config()))


def test_compiling_pays_once_it_has_saved_what_it_took():
    for compiled, seconds, expected in ((1.5, 30.0, 60_000), (2.0, 30.0, None), (None, 0.0, None)):
        assert Gains(2.0, None, None, compiled, compile_seconds=seconds).pays_after == expected
