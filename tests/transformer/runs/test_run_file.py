"""A run is saved with all that it has and comes back equal; damaged and made-up files are refused in one sentence."""

import io
import json
import random
import re
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load as tensors_in
from safetensors.numpy import save as as_safetensors

from tests.transformer.made_up_changes import SilentHead, made_up_changes  # noqa: F401
from transformer import Beam, Greedy, Sampling, load_run, run_batch
from transformer.errors import DataError
from transformer.runs.run_file import RECORD, check_run, open_run_file, read_run, run_bytes

SOURCE = "ba lo mi ta"
DECODINGS = [Greedy(), Beam(size=3), Sampling(temperature=0.8, top_k=20, seed=4)]
MARK = {"glassformer_run": "1"}


@pytest.fixture
def content(pair):
    return run_bytes(pair.run(pair.query(SOURCE, max_new=5, decoding=Beam(size=2))))


def read(content):
    return read_run(io.BytesIO(content), len(content), label="x.glass")


def changed(content, tensors=None, **record):
    """The file with other tensors and other fields of its record."""
    found = tensors_in(content)
    told = json.loads(bytes(found[RECORD])) | record
    found |= {RECORD: np.frombuffer(json.dumps(told).encode(), np.uint8)} | (tensors or {})
    return as_safetensors({name: one for name, one in found.items() if one is not None}, MARK)


@pytest.mark.parametrize("name", ["pair", "shared", "decoder", "encoder"])
@pytest.mark.parametrize("decoding", DECODINGS, ids=lambda one: type(one).__name__)
def test_a_run_comes_back_equal(request, name, decoding, tmp_path):
    checkpoint = request.getfixturevalue(name)
    trace = checkpoint.run(checkpoint.query(SOURCE, decoding=decoding, max_new=6))
    trace.save(tmp_path / "run.glass")
    again, found = load_run(tmp_path / "run.glass"), open_run_file(tmp_path / "run.glass")
    assert (again, again.seconds) == (trace, trace.seconds)
    assert all(again.step(t).candidates == trace.step(t).candidates for t in range(trace.n_steps))
    assert (found.config, found.card.title) == (checkpoint.config, checkpoint.card.title)
    assert found.made_with.keys() == {"glassformer", "torch", "python", "machine"}


@pytest.mark.usefixtures("made_up_changes")
def test_padded_and_changed_runs_and_runs_without_maps_come_back_equal(pair, content):
    queries = [pair.query(SOURCE, max_new=9), pair.query("mi", max_new=4, interventions=(SilentHead("cross", 0, 1),))]
    traces = [*run_batch(pair, [*queries[:1], pair.query("ta", max_new=3)]), pair.run(queries[1])]
    traces += run_batch(pair, queries[:1], maps=False)
    assert all(read(run_bytes(trace)).trace == trace for trace in traces)
    # What a list says a file is of, without its arrays.
    assert check_run(io.BytesIO(content), len(content), label="x") == ("tiny", SOURCE)


def test_a_file_that_exists_is_replaced_whole_or_not_at_all(pair, tmp_path, monkeypatch):
    place = tmp_path / "run.glass"
    pair.run("mi").save(place)
    before = place.read_bytes()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        pair.run(SOURCE).save(place)
    assert place.read_bytes() == before
    assert list(tmp_path.iterdir()) == [place]


@pytest.mark.parametrize(
    ("record", "names"),
    [
        ({"tgt_ids": [1, 10**9]}, "tgt_ids"),
        ({"tgt_ids": []}, "tgt_tokens"),
        ({"src_tokens": ["a"]}, "src_tokens"),
        ({"first_row": -1}, "first_row"),
        ({"vocabulary": ["a"]}, "vocabulary"),
        ({"stop_reason": "bored"}, "stop_reason"),
        ({"log_prob": "high"}, "log_prob"),
        ({"query": {"version": 1}}, "query"),
        ({"config": {"format_version": 1}}, "is missing"),
        ({"hypotheses": [{"text": 3}]}, "text"),
        ({"rules": {"n_prompt": 1, "most": 5, "insisted": [[1]]}}, "insisted"),
        ({"card": {"title": 7}}, "title"),
        ({"special": {"source": ["x"]}}, "source"),
        ({"notes": "none"}, "notes"),
    ],
)
def test_parts_that_do_not_fit_are_named(content, record, names):
    with pytest.raises(DataError, match=rf"^x\.glass: .*{names}"):
        read(changed(content, **record))


def test_tensors_that_do_not_fit_are_named_and_impossible_numbers_refused(content):
    found = tensors_in(content)
    for name, value, says in (
        ("weights.cross", np.zeros((1, 1, 1, 1), np.float32), "weights.cross"),
        ("weights.cross", None, "weights.cross"),
        ("log_probs", np.full((5, 3), np.nan, np.float32), "log_probs"),
        ("more", np.zeros(3, np.float32), "more"),
        ("weights.other", np.zeros(3, np.float32), "weights.other"),
        ("log_sums", np.zeros(5, np.float64), "log_sums"),
        ("weights.cross", np.full_like(found["weights.cross"], 2.0), "not from 0 to 1"),
        ("log_probs", np.full_like(found["log_probs"], np.nan), "not a number"),
        ("log_sums", np.full_like(found["log_sums"], np.inf), "not a number"),
    ):
        with pytest.raises(DataError, match=re.escape(says)):
            read(changed(content, {name: value}))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "too short"),
        (b"PK\3\4" * 50, "not a safetensors file"),
        (as_safetensors({"a": np.zeros(2, np.float32)}), "not a saved run"),
        (as_safetensors({RECORD: np.zeros(2, np.uint8)}, {"glassformer_run": "2"}), "reads version 1"),
        (as_safetensors({RECORD: np.zeros(2, np.float32)}, MARK), "record is not text"),
        (as_safetensors({RECORD: np.frombuffer(b"[]", np.uint8)}, MARK), "not a JSON object"),
    ],
)
def test_other_files_are_refused(content, says):
    with pytest.raises(DataError, match=says):
        read(content)
    with pytest.raises(DataError, match="cannot be read: no such file"):
        load_run("nowhere.glass")


def test_damaged_files_are_refused_or_read_and_never_break(content):
    chance = random.Random(0)
    for _ in range(150):
        damaged = bytearray(content)
        for _ in range(chance.randint(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        for spoiled in (bytes(damaged), bytes(damaged[: chance.randrange(len(damaged))])):
            with suppress(DataError):
                read(spoiled)


def test_maps_as_a_long_table(pair, tmp_path):
    trace = pair.run(pair.query(SOURCE, max_new=4))
    trace.to_parquet(tmp_path / "maps.parquet")
    table = pd.read_parquet(tmp_path / "maps.parquet")
    assert list(table.columns) == ["kind", "layer", "head", "query", "key", "query_token", "key_token", "weight"]
    for kind in trace.kinds:
        part, again = table[table.kind == kind], np.zeros_like(trace.maps(kind))
        again[part.layer, part["head"], part["query"], part["key"]] = part.weight
        assert (again == trace.maps(kind)).all()
        assert len(part) == np.broadcast_to(trace.mask(kind), again.shape).sum()
    last = table[table.kind == "cross"].iloc[-1]
    assert (last.query_token, last.key_token) == (trace.read_tokens[-1], trace.src_tokens[-1])
