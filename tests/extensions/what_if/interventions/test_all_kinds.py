"""What holds for every kind of intervention, those that come later among them: text, JSON, other models, threads."""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.extensions.what_if.interventions import KINDS
from tests.extensions.what_if.interventions.of_kinds import any_change, example
from tests.healthy import healthy, texts
from transformer import Query, run
from transformer.errors import QueryError
from transformer.runs.interventions import checked, from_record, parse, write

GROUPS = {"heads", "rows", "pieces", "positions", "masks", "attention", "layers"}
ROOT = Path(__file__).parents[4]

UNFIT = {
    "marian": {},
    "gpt2": {"pads": "no padding piece", "padding": "no padding piece"},
    "llama": {"pads": "no padding piece", "padding": "no padding piece", "heads": "Rotary positions"},
    "bert": {"insist": "writes nothing", "causal": "An encoder-only model has no causal mask"},
}
"""What makes no sense in checkpoints of other programs, and a part of why."""


# As text and as JSON


@given(any_change())
@settings(deadline=None, max_examples=150)
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


@given(any_change())
@settings(deadline=None, max_examples=100)
def test_it_is_told_in_one_line(change):
    told = change.told()
    assert told
    assert not told.endswith(".") or "text" in change.to_record()
    assert "{" not in told or "text" in change.to_record()


def read(function, what):
    """What it reads, or why it does not, in one sentence."""
    try:
        return function(what), ""
    except QueryError as error:
        return None, str(error)


FORGED = ["", "-", ".", "_", "0", "9999999", "m1", "~", "~FF", "é", "x", "all", "\n", " ", "1e400", "٣"]
WRONG = [None, -1, 10**30, 0.5, float("nan"), float("inf"), True, "", "x", [], {}, [None]]


@given(any_change(), st.integers(0, 200), st.sampled_from(FORGED), st.booleans())
@settings(deadline=None, max_examples=200)
def test_forged_text_is_read_as_it_stands_or_refused_in_one_sentence(change, place, forged, instead):
    text = str(change)
    place %= len(text) + 1
    found, refusal = read(parse, text[:place] + forged + text[place + instead :])
    assert "\n" not in refusal
    assert len(refusal) < 900
    assert refusal or parse(write(found)) == found


@given(any_change(), st.sampled_from(WRONG), st.data())
@settings(deadline=None, max_examples=200)
def test_a_forged_record_is_refused_or_allowed(change, value, data):
    record = change.to_record()
    name = data.draw(st.sampled_from(list(record)))
    found, refusal = read(from_record, record | {name: value})
    assert "\n" not in refusal
    assert refusal or from_record(found.to_record()) == found  # NaN never gets this far
    assert refusal or parse(str(found)) == (found,)


@given(any_change())
@settings(deadline=None, max_examples=50)
def test_a_change_contradicts_itself(change):
    with pytest.raises(QueryError, match="is already made"):
        checked([change, change])


def examples():
    checkpoint = healthy("marian")
    text = texts("marian").sources[0]
    return [example(kind, checkpoint, text) for kind in KINDS.values()]


_ELSEWHERE = """
import json, sys
from transformer.runs.interventions import parse, write
print(json.dumps([[write([one]), one.to_record(), one.told()] for line in sys.stdin for one in parse(line.strip())]))
"""


def test_another_process_writes_the_same():
    """Nothing in a text depends on the order of a set, or on a hash."""
    lines = [str(one) for one in examples()]
    found = subprocess.run([sys.executable, "-c", _ELSEWHERE], input="\n".join(lines), capture_output=True, text=True,
                           check=True, cwd=ROOT, env=os.environ | {"PYTHONHASHSEED": "7"})  # fmt: skip
    expected = [[write([one]), one.to_record(), one.told()] for one in examples()]
    assert json.loads(found.stdout) == json.loads(json.dumps(expected))


def test_every_kind_says_what_it_is():
    for word, kind in KINDS.items():
        assert re.fullmatch(r"[a-z]{1,20}", word)
        assert kind.group in GROUPS
        assert kind.title
        assert not kind.title.endswith(".")
        assert kind.about.endswith(".")
    titles = [kind.title for kind in KINDS.values()]
    assert len(set(titles)) == len(titles)


# In checkpoints of other programs


@pytest.mark.parametrize("name", UNFIT)
def test_what_makes_sense_works_and_the_rest_says_why_not(name):
    checkpoint = healthy(name)
    text = " ".join(texts(name).sources[0].split()[:5])
    plain = run(checkpoint, checkpoint.query(text, max_new=4))
    refused = {}
    for word, kind in KINDS.items():
        change = example(kind, checkpoint, text)
        query = checkpoint.query(text, interventions=(change,), max_new=4)
        why = kind.unfit(checkpoint.config)
        trace, refusal = read(partial(run, checkpoint), query)
        if trace is None:
            refused[word] = refusal
        assert why is None or str(why) == refusal
        assert trace is None or np.isfinite(trace.log_prob)
    assert refused.keys() == UNFIT[name].keys()
    for word, part in UNFIT[name].items():
        assert part in refused[word]
    assert run(checkpoint, checkpoint.query(text, max_new=4)) == plain  # nothing of all that is left


# Beside an unchanged run


def test_a_control_run_beside_changed_ones_is_as_one_alone():
    """To the last bit: all of them share one model, and nobody writes to it."""
    checkpoint, text = healthy("marian"), texts("marian").sources[0]
    control = checkpoint.query(text, max_new=6)
    alone = run(checkpoint, control)
    queries = [checkpoint.query(text, max_new=6, interventions=(one,)) for one in examples()]
    with ThreadPoolExecutor(3) as pool:
        changed = [pool.submit(run, checkpoint, query) for query in queries]
        controls = [pool.submit(run, checkpoint, control) for _ in queries]
        assert all(one.result() == alone for one in controls)
        beside = [one.result() for one in changed]
    assert [run(checkpoint, query) for query in queries[::5]] == beside[::5]
    assert sum(not np.array_equal(one.log_probs[:1], alone.log_probs[:1]) for one in beside) > len(queries) / 2
