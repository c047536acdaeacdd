"""Every kind of change is written and read back, refuses forged text, and leaves other runs and models alone."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.extensions.what_if.interventions import KINDS
from tests.extensions.what_if.interventions.of_kinds import any_change, example
from tests.healthy import healthy, texts
from transformer import Query, ZeroHead, run
from transformer.errors import QueryError
from transformer.model.taps import NO_TAP
from transformer.runs.apply_interventions import tap_for
from transformer.runs.interventions import checked, from_record, parse, write

# As text and as JSON


@given(any_change())
@settings(deadline=None, max_examples=30)
def test_what_is_written_is_read_back(change):
    text = str(change)
    assert parse(text) == (change,)
    assert write(parse(text)) == text
    assert re.fullmatch(r"[A-Za-z0-9.~-]+", text)  # nothing that an address would have to quote, and no separator
    record = json.loads(json.dumps(change.to_record()))
    again = from_record(record)
    assert again == change
    assert hash(again) == hash(change)
    assert again.to_record() == change.to_record()
    query = Query(checkpoint="ab", source="x", interventions=(change,))
    assert Query.from_json(query.to_json()) == query
    with pytest.raises(QueryError, match="is already made"):
        checked([change, change])
    told = change.told()
    assert told
    assert "text" in record or not (told.endswith(".") or "{" in told)


def read(function, what):
    """What it reads, or why it does not, in one sentence."""
    try:
        return function(what), ""
    except QueryError as error:
        return None, str(error)


FORGED = ["", "-", ".", "_", "0", "9999999", "m1", "~", "~FF", "é", "x", "all", "\n", " ", "1e400", "٣"]
WRONG = [None, -1, 10**30, 0.5, float("nan"), float("inf"), True, "", "x", [], {}, [None]]


@given(any_change(), st.integers(0, 200), st.sampled_from(FORGED), st.booleans())
@settings(deadline=None, max_examples=40)
def test_forged_text_is_read_as_it_stands_or_refused_in_one_sentence(change, place, forged, instead):
    text = str(change)
    place %= len(text) + 1
    found, refusal = read(parse, text[:place] + forged + text[place + instead :])
    assert "\n" not in refusal
    assert len(refusal) < 900
    assert refusal or parse(write(found)) == found


@given(any_change(), st.sampled_from(WRONG), st.data())
@settings(deadline=None, max_examples=40)
def test_a_forged_record_is_refused_or_allowed(change, value, data):
    record = change.to_record()
    name = data.draw(st.sampled_from(list(record)))
    found, refusal = read(from_record, record | {name: value})
    assert "\n" not in refusal
    assert refusal or from_record(found.to_record()) == found  # NaN never gets this far
    assert refusal or parse(str(found)) == (found,)


# Text and JSON that people and old versions wrote


def test_text_counts_from_1_and_no_change_is_no_text(checkpoint):
    assert write([ZeroHead("cross", 2, 0), ZeroHead("decoder", 0, 1)]) == "zero-cross.3.1_zero-decoder.1.2"
    assert (write([]), parse("")) == ("", ())
    assert tap_for((), checkpoint) is NO_TAP


PARTS = st.sampled_from(["zero", "-", "cross", "decoder", ".", "1", "3", "0", "_", "999999", "٣", " ", "\n", "é", ""])


@given(st.text(max_size=30) | st.lists(PARTS, max_size=9).map("".join))
def test_any_other_text_is_refused_in_one_sentence(text):
    found, refusal = read(parse, text)
    assert "\n" not in refusal
    assert len(refusal) < 300
    assert refusal or write(found) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("zero-cross.0.1", r"zero-cross\.0\.1.*from 1 to 64"),
        ("zero-cross.1.20000", r"zero-cross\.1\.20000.*from 1 to 16,384"),
        ("zero-cross.01.1", None),
        ("zero-self.1.1", None),
        ("zero-cross.1", None),
        ("zero-cross.1.1_", None),
        ("_".join(f"zero-cross.1.{head}" for head in range(1, 66)), "65 interventions were requested; the limit is 64"),
    ],
)
def test_text_that_is_nearly_right_is_refused(text, said):
    with pytest.raises(QueryError, match=said):
        parse(text)


def test_json_written_before_there_were_any_still_opens(checkpoint):
    query = checkpoint.query("mi")
    assert "interventions" not in json.loads(query.to_json())
    changed = replace(query, interventions=[ZeroHead("cross", 1, 0)])
    written = {"attention": "cross", "change": "zero", "head": 0, "layer": 1}
    assert json.loads(changed.to_json())["interventions"] == [written]
    assert changed != query
    with pytest.raises(FrozenInstanceError):
        changed.interventions[0].layer = 1


@pytest.mark.parametrize("wrong", [3, [3], [{}], {"a": 1}, [None], [{"change": "one", "layer": 0}]], ids=str)
def test_json_that_is_no_intervention_is_refused(checkpoint, wrong):
    record = json.loads(checkpoint.query("mi").to_json()) | {"interventions": wrong}
    with pytest.raises(QueryError):
        Query.from_json(json.dumps(record))
    with pytest.raises(QueryError):
        checkpoint.query("mi", interventions=wrong)


# Beside an unchanged run


def test_every_kind_runs_in_a_foreign_checkpoint_and_leaves_a_control_beside_it_alone():
    """To the last bit: all of them share one model, and nobody writes to it."""
    checkpoint, text = healthy("marian"), texts("marian").sources[0]
    control = checkpoint.query(text, max_new=6)
    alone = run(checkpoint, control)
    changes = [example(kind, checkpoint, text) for kind in KINDS.values()]
    assert not [kind for kind in KINDS.values() if kind.unfit(checkpoint.config)]
    queries = [checkpoint.query(text, max_new=6, interventions=(one,)) for one in changes]
    with ThreadPoolExecutor(3) as pool:
        changed = [pool.submit(run, checkpoint, query) for query in queries]
        assert all(one.result() == alone for one in [pool.submit(run, checkpoint, control) for _ in queries])
        beside = [one.result() for one in changed]
    assert [run(checkpoint, query) for query in queries[::5]] == beside[::5]
    assert sum(not np.array_equal(one.log_probs[:1], alone.log_probs[:1]) for one in beside) > len(queries) / 2
