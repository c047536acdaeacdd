"""Whatever a draft proposes, a run writes what decoding step by step writes, and its trace is the same."""

import gc
import re
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from weakref import ref

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.extensions.drafts import drafter, int8_draft
from tests.transformer.featured import FEATURED, featured
from tests.transformer.one_stack import alone
from tests.transformer.runs.test_dynamic_batching import WORDS, made_up
from transformer import Sampling, ZeroHead, load, run, run_batch
from transformer.errors import QueryError
from transformer.runs import drafting
from transformer.runs import reading as parts
from transformer.runs.drafting import settled, verify_and_trace
from transformer.runs.query import Beam, Query
from transformer.runs.reading import go_on, read
from transformer.runs.running import run_together, write

SOURCES = ["ba lo mi ta", "mi", "lo ke su ba lo su mi", "ta ta"]


@pytest.fixture(autouse=True)
def step_by_step(monkeypatch):
    monkeypatch.setenv(drafter.ENVIRONMENT, "none")


@pytest.fixture(params=["both", "decoder"])
def checkpoint(request, checkpoint_folder, tmp_path):
    return alone("decoder", tmp_path) if request.param == "decoder" else load(checkpoint_folder)


@pytest.fixture
def stepped(monkeypatch):
    """How often a run was decoded step by step."""
    calls, decode = [], parts.EncodedBatch.decode
    monkeypatch.setattr(parts.EncodedBatch, "decode", lambda self, *args: calls.append(self) or decode(self, *args))
    return calls


class Proposed:
    """A draft that proposes given outputs, of each row, one after the other, and then nonsense."""

    name = "proposed"

    def __init__(self, *rounds):
        self.rounds, self.begun = list(rounds), []

    def suits(self, reading):
        return True

    def write(self, reading, rows, begun, pause):
        self.begun.append(list(begun))
        proposed = self.rounds.pop(0) if self.rounds else [(7,) * 30] * len(reading.queries)
        most = min(reading.queries[0].max_new, reading.sources[0].room)
        return [(*start, *proposed[row][len(start) :])[:most] for row, start in zip(rows, begun, strict=True)]


def query(checkpoint, source=SOURCES[0], **changes):
    return checkpoint.query(source, **({"max_new": 8} | changes))


def test_a_right_draft_is_the_trace_at_once_and_after_a_wrong_piece_what_was_right_is_kept(checkpoint, stepped):
    expected = run(checkpoint, query(checkpoint))
    right = expected.tgt_ids
    wrong = (*right[:2], (right[2] + 1) % 40, *right[3:])
    stepped.clear()
    for rounds, begun in (([right], [[()]]), ([wrong, right], [[()], [right[:3]]])):
        draft = Proposed(*([one] for one in rounds))
        assert verify_and_trace(read(checkpoint, [query(checkpoint)]), draft, go_on) == (expected,)
        assert draft.begun == begun
    assert not stepped
    never, long = Proposed(), query(checkpoint, max_new=20)
    assert verify_and_trace(read(checkpoint, [long]), never, go_on) == (run(checkpoint, long),)
    assert len(never.begun) <= drafting.ROUNDS + 1


@settings(max_examples=15)
@given(data=st.data())
def test_whatever_is_proposed_the_run_is_the_same(data, checkpoint_folder):
    checkpoint = load(checkpoint_folder)
    with torch.no_grad():
        checkpoint.model.output_weight[checkpoint.config.eos_id] *= 3  # it ends some outputs
    how = {"decoding": Sampling(seed=3, top_k=5)} if data.draw(st.booleans()) else {}
    queries = [query(checkpoint, source, **how) for source in SOURCES[: data.draw(st.integers(1, 4))]]
    expected = run_batch(checkpoint, queries)
    piece = st.integers(4, checkpoint.config.tgt_vocab_size - 1) | st.sampled_from(checkpoint.config.end_ids)
    outputs = [st.just((*one.tgt_ids, 7)) | st.tuples(*[piece] * 9) for one in expected]
    proposals = data.draw(st.lists(st.tuples(*outputs), min_size=1, max_size=3))
    assert verify_and_trace(read(checkpoint, queries), Proposed(*proposals), go_on) == expected


def test_nearly_equal_pieces_are_decided_step_by_step(tmp_path, stepped):
    checkpoint = alone("decoder", tmp_path, output_bias=True)
    with torch.no_grad():
        checkpoint.model.output_weight[5] = checkpoint.model.output_weight[4]
        checkpoint.model.output_bias[4:6] = 30.0  # these two and no other are ever chosen
    asked = query(checkpoint)
    expected = run(checkpoint, asked)
    assert set(expected.tgt_ids) <= {4, 5}
    for proposed in (expected.tgt_ids, (4,) * 8, (5,) * 8, (5, 4) * 4):
        stepped.clear()
        assert verify_and_trace(read(checkpoint, [asked]), Proposed([proposed]), go_on) == (expected,)
        assert len(stepped) == 1
        assert settled(read(checkpoint, [asked]), Proposed([proposed]), go_on) is None


RULES = {"repetition_penalty": 1.4, "no_repeat_ngram": 2, "min_new": 4, "forced_end_id": 3, "banned_ids": (9,)}
DAILY = ("fairseq", "windows", "rules of decoding")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.deep] * (n not in DAILY)) for n in (*FEATURED, "rules of decoding")]
)
def test_with_the_draft_of_8_bits_every_kind_of_model_runs_the_same(name, tmp_path, monkeypatch):
    monkeypatch.setattr(int8_draft, "SMALLEST", 0)
    checkpoint = featured(name, tmp_path) if name in FEATURED else alone("decoder", tmp_path, **RULES)
    queries = [query(checkpoint, source) for source in SOURCES]
    queries += [query(checkpoint, source, decoding=Sampling(seed=5, temperature=0.7)) for source in SOURCES]
    if checkpoint.model.anatomy.writes:
        queries += [query(checkpoint, forced=(7, 5)), query(checkpoint, decoding=Beam(size=2), max_new=5)]
        queries += [query(checkpoint, interventions=(ZeroHead("decoder", 0, 0),))]
    expected = [run(checkpoint, one) for one in queries]
    monkeypatch.setenv(drafter.ENVIRONMENT, "int8")
    assert [run(checkpoint, one) for one in queries] == expected
    assert [write(checkpoint, [one])[0] for one in queries] == [one.tgt_ids for one in expected]


def test_a_damaged_model_says_the_same_error(checkpoint_folder, monkeypatch):
    checkpoint = load(checkpoint_folder)
    with torch.no_grad():
        checkpoint.model.get_submodule("decoder.layers.1.ffn.up_proj").weight[0, 0] = torch.nan
    with pytest.raises(QueryError) as stepwise:
        run(checkpoint, query(checkpoint))
    monkeypatch.setenv(drafter.ENVIRONMENT, "int8")
    with pytest.raises(QueryError, match=re.escape(str(stepwise.value))):
        run(checkpoint, query(checkpoint))


def test_which_draft_is_used_is_a_setting(checkpoint_folder, monkeypatch, caplog):
    caplog.set_level("INFO", "glassformer.drafts")
    checkpoint = load(checkpoint_folder)
    reading = read(checkpoint, [query(checkpoint)])
    assert drafter.draft_for(reading) is None
    monkeypatch.setenv(drafter.ENVIRONMENT, "int8")
    assert drafter.draft_for(reading).name == "int8"
    assert "drafts by int8" in caplog.text
    other = load(checkpoint_folder)
    monkeypatch.setenv(drafter.ENVIRONMENT, "auto")
    assert drafter.draft_for(read(other, [query(other)])) is None  # a single run does not pay for making one
    assert drafter.draft_for(read(other, [query(other)])).name == "ctranslate2"
    drawn = read(other, [query(other, decoding=Sampling())])
    assert drafter.draft_for(drawn).name == "int8"  # CTranslate2 cannot draw with our seeds
    made = []
    monkeypatch.setattr(drafter, "_made", lambda checkpoint, name: made.append(name))
    monkeypatch.setenv(drafter.ENVIRONMENT, "ctranslate2")
    third = load(checkpoint_folder)
    for changes in ({"decoding": Beam(size=2)}, {"interventions": (ZeroHead("decoder", 0, 0),)}):
        assert drafter.draft_for(read(third, [query(third, **changes)])) is None
    assert not made  # none that suits nothing


def test_drafts_that_are_mostly_wrong_are_given_up(checkpoint_folder, monkeypatch, caplog):
    caplog.set_level("INFO", "glassformer.drafts")
    checkpoint = load(checkpoint_folder)
    monkeypatch.setenv(drafter.ENVIRONMENT, "int8")
    reading = read(checkpoint, [query(checkpoint)])
    assert drafter.draft_for(reading) is not None
    drafter.judge(checkpoint.model, written=drafter.TRIED, right=int(drafter.TRIED * drafter.WORTH) - 1)
    assert drafter.draft_for(reading) is None
    assert "not used any more" in caplog.text


@pytest.mark.parametrize(
    ("asked", "place"),
    [("int8", "int8_draft.QuickDecoder"), ("ctranslate2", "ctranslate2_draft.made"),
     ("ctranslate2", "ctranslate2_draft.CTranslate2Draft.write")],
)  # fmt: skip
def test_where_a_draft_cannot_be_made_or_fails_a_run_goes_on_without(asked, place, checkpoint_folder, monkeypatch):
    def refuse(*what):
        raise TypeError("no engine")

    checkpoint = load(checkpoint_folder)
    expected = run(checkpoint, query(checkpoint))
    monkeypatch.setattr(f"glassformer.extensions.drafts.{place}", refuse)
    monkeypatch.setenv(drafter.ENVIRONMENT, asked)
    assert run(checkpoint, query(checkpoint)) == expected
    found = drafter.draft_for(read(checkpoint, [query(checkpoint)]))  # the other kind from now on, if there is one
    assert (found and found.name) == {"int8": None, "ctranslate2": "int8"}[asked]


@pytest.mark.parametrize("asked", ["int8", "ctranslate2"])
def test_weights_that_change_change_the_run_and_a_checkpoint_that_is_let_go_takes_its_drafts_along(
    asked, checkpoint_folder, monkeypatch
):
    checkpoint = load(checkpoint_folder)
    monkeypatch.setenv(drafter.ENVIRONMENT, asked)
    assert drafter.draft_for(read(checkpoint, [query(checkpoint)])).name == asked
    before = run(checkpoint, query(checkpoint))
    with torch.no_grad():
        for weight in checkpoint.model.parameters():
            weight.mul_(-1.5)
    found = run(checkpoint, query(checkpoint))
    monkeypatch.setenv(drafter.ENVIRONMENT, "none")
    assert found == run(checkpoint, query(checkpoint)) != before
    gone = ref(checkpoint.model)
    del checkpoint, before, found, weight
    gc.collect()
    assert gone() is None


def test_while_a_draft_is_made_other_models_go_on(checkpoint_folder, monkeypatch):
    begun, goes_on, make = Event(), Event(), int8_draft.Int8

    def slow(model):
        if model is one.model:
            begun.set()
            goes_on.wait(20)
        return make(model)

    monkeypatch.setattr(int8_draft, "Int8", slow)
    monkeypatch.setenv(drafter.ENVIRONMENT, "int8")
    one, other = load(checkpoint_folder), load(checkpoint_folder)
    readings = [read(checkpoint, [query(checkpoint)]) for checkpoint in (one, other)]
    with ThreadPoolExecutor(2) as pool:
        first, second = (pool.submit(drafter.draft_for, reading) for reading in readings)
        assert begun.wait(20)
        assert second.result(20).name == "int8"
        goes_on.set()
        assert first.result(20).name == "int8"


def test_what_the_model_writes_itself_counts_as_no_draft(monkeypatch):
    made, judged = made_up(4), []
    monkeypatch.setattr(drafter, "judge", lambda model, **how: judged.append(how))
    queries = [Query(checkpoint="hash", source=word, max_new=6) for word in WORDS]
    assert len(list(run_together(made, queries))) == len(queries)
    assert not judged
