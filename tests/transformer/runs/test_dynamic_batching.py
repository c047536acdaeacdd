"""Queries that run together have the traces of runs alone, whoever the neighbours are."""

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.test_checkpoints import FOLDER, SHIPPED
from tests.transformer.alike import assert_alike
from tests.transformer.made_up_changes import SilentHead
from tests.transformer.tiny import tiny_model
from transformer import Beam, Sampling, load, run
from transformer.errors import QueryError
from transformer.runs import dynamic_batching, reading, running
from transformer.runs.dynamic_batching import run_together
from transformer.text.tokenizer import Encoding

pytestmark = pytest.mark.usefixtures("one_thread")

WORDS = ("ba", "lo", "mi", "ta", "ke", "su")
EOS = 3
HOW = [
    Sampling(seed=4),
    Sampling(seed=4, temperature=0.3),
    Sampling(seed=5, top_k=5),
    Sampling(seed=6, temperature=2.0, top_p=0.8),
    Sampling(seed=7, temperature=1.4, top_k=9, top_p=0.7),
]


@pytest.fixture(scope="module", params=["pair", "shared", "decoder", "encoder"])
def checkpoint(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def decoded_alone(monkeypatch):
    """The queries that were decoded by themselves."""
    queries, decode = [], reading.EncodedBatch.decode

    def watched(self, *args):
        queries.extend(self.queries)
        return decode(self, *args)

    monkeypatch.setattr(reading.EncodedBatch, "decode", watched)
    return queries


def mixed_queries(checkpoint):
    sources = ["ba lo mi ta", "mi", "lo ke su ba lo su mi", "ta ta", "ba lo mi ta", "su"]
    forced = {"forced": (7, 5)} if checkpoint.model.anatomy.writes else {}
    changed = (SilentHead(checkpoint.model.anatomy.kinds[0], 0, 1),)
    return [
        *(checkpoint.query(source, max_new=9) for source in sources),
        *(checkpoint.query(sources[i], decoding=how, max_new=8) for i, how in enumerate(HOW)),
        checkpoint.query("su ba", max_new=3),
        checkpoint.query("su ba", max_new=9, **forced),
        checkpoint.query("su mi", max_new=9, decoding=Sampling(seed=1), **forced),
        checkpoint.query("ta", max_new=6, decoding=Beam(size=3), hypothesis=2),
        checkpoint.query("ta lo", max_new=6, interventions=changed),
        checkpoint.query("ta lo", max_new=512),
    ]


def outcome(checkpoint, query):
    """What a run alone gives or raises."""
    try:
        return run(checkpoint, query)
    except QueryError as error:
        return str(error)


def outcomes(checkpoint, queries):
    found = list(run_together(checkpoint, queries))
    assert len(found) == len(queries)
    return [str(one) if isinstance(one, QueryError) else one for one in found]


def test_each_trace_is_that_of_a_run_alone(checkpoint):
    queries = mixed_queries(checkpoint)
    expected = [run(checkpoint, query) for query in queries]
    assert_alike(run_together(checkpoint, queries), expected)
    assert_alike(run_together(checkpoint, queries[4:2:-1]), expected[4:2:-1])
    assert list(run_together(checkpoint, queries[:1])) == expected[:1]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "reverse" else pytest.mark.deep) for name in SHIPPED]
)
def test_the_shipped_models_write_in_company_what_they_write_alone(name, decoded_alone):
    checkpoint = load(FOLDER / name)
    examples = [example for example in checkpoint.card.examples if example.strip()]
    sources = [*examples[:4], examples[0][:1], examples[-1] * 2]
    fitting = [source for source in sources if len(checkpoint.src_tokenizer.encode(source).ids) < 12]
    sources = fitting if checkpoint.config.max_len < 20 else sources
    queries = [checkpoint.query(source) for source in sources]
    if checkpoint.model.anatomy.writes:
        queries += [checkpoint.query(sources[0], decoding=how) for how in HOW[::2]]
    found = list(run_together(checkpoint, queries))
    by_themselves = len(decoded_alone)
    assert_alike(found, [run(checkpoint, query) for query in queries])
    if checkpoint.model.anatomy.writes:
        assert by_themselves <= len(queries) / 3  # most stay in the batch, or nothing is won


def made_up(seed, **changes):
    """A random model that reads the words; what a run needs of a checkpoint."""
    model = tiny_model(seed=seed, dtype=torch.float32, **changes)
    size = model.config.src_vocab_size
    tokenizer = SimpleNamespace(
        encode=lambda text: Encoding(tuple(4 + WORDS.index(word) for word in text.split()), tuple(text.split())),
        notes=(),
        piece=lambda i: f"<{i}>",
        pieces=tuple(f"<{i}>" for i in range(max(size, model.config.tgt_vocab_size))),
        decode=lambda ids: " ".join(map(str, ids)),
    )
    parts = {"config": model.config, "model": model, "src_tokenizer": tokenizer, "tgt_tokenizer": tokenizer}
    return SimpleNamespace(name="made up", content_hash="hash", **parts)


@settings(max_examples=8)
@given(data=st.data())
def test_random_models_write_in_company_what_they_write_alone(data):
    changes = data.draw(
        st.fixed_dictionaries(
            {},
            optional={
                "norm": st.sampled_from(["pre", "post"]),
                "n_kv_heads": st.just(1),
                "positions": st.just("learned"),
                "tie_output": st.just(True),
                "n_encoder_layers": st.just(1),
            },
        )
    )
    checkpoint = made_up(data.draw(st.integers(0, 999)), **changes)
    words = st.lists(st.sampled_from(WORDS), min_size=0, max_size=12).map(" ".join)
    how = st.sampled_from([None, None, *HOW])
    queries = [
        running.Query(
            checkpoint="hash",
            source=data.draw(words),
            max_new=data.draw(st.integers(1, 20)),
            **({"decoding": decoding} if (decoding := data.draw(how)) else {}),
        )
        for _ in range(data.draw(st.integers(1, 12)))
    ]
    assert_alike(outcomes(checkpoint, queries), [outcome(checkpoint, query) for query in queries])


def test_pieces_that_are_equally_probable_are_chosen_alone(decoded_alone):
    checkpoint = made_up(3, output_bias=True)
    with torch.no_grad():
        checkpoint.model.output_weight[5] = checkpoint.model.output_weight[4]
        checkpoint.model.output_bias[4:6] = 30.0  # these two and no other are ever chosen
    queries = [running.Query(checkpoint="hash", source=word, max_new=4) for word in WORDS]
    found = list(run_together(checkpoint, queries))
    assert decoded_alone == queries
    assert_alike(found, [run(checkpoint, query) for query in queries])


def test_what_a_batch_gets_wrong_does_not_reach_a_trace(monkeypatch):
    checkpoint, calls = made_up(4), []
    queries = [running.Query(checkpoint="hash", source=word, max_new=6) for word in WORDS]
    queries += [running.Query(checkpoint="hash", source=word, max_new=6, decoding=HOW[0]) for word in WORDS]
    expected = [run(checkpoint, query) for query in queries]

    def wrong(reading, pause):
        calls.append(reading)
        return [(5, 6, EOS)] * len(reading.queries)

    monkeypatch.setattr(dynamic_batching, "_write", wrong)
    assert_alike(run_together(checkpoint, queries), expected)
    assert sum(len(reading.queries) for reading in calls) == len(queries)  # once, whatever comes of it


@pytest.mark.parametrize("error", [QueryError("not finite"), MemoryError()])
def test_a_batch_that_fails_is_run_one_by_one(error, monkeypatch):
    def fail(*args):
        raise error

    checkpoint = made_up(5)
    queries = [running.Query(checkpoint="hash", source=word, max_new=6) for word in WORDS]
    monkeypatch.setattr(dynamic_batching, "_write", fail)
    assert_alike(run_together(checkpoint, queries), [run(checkpoint, query) for query in queries])


def test_one_query_that_is_refused_takes_nobody_along(checkpoint):
    good = [checkpoint.query(source, max_new=5) for source in ("ba lo", "mi ta ba", "su")]
    bad = [checkpoint.query(" "), checkpoint.query("ba " * 60), running.Query(checkpoint="other", source="ba")]
    queries = [bad[0], good[0], bad[1], good[1], bad[2], good[2]]
    found = outcomes(checkpoint, queries)
    assert_alike(found, [outcome(checkpoint, query) for query in queries])
    assert [isinstance(one, str) for one in found] == [True, False] * 3


def test_a_pause_stands_between_the_rounds(checkpoint):
    """What is done in a pause, another run of the same model included, changes nothing."""
    other = checkpoint.query("mi ta", max_new=3)
    queries = [checkpoint.query(source, max_new=9) for source in ("ba lo mi", "ta", "su ke lo")]
    found, pauses = [], []

    def pause():
        pauses.append(1)
        found.append(run(checkpoint, other))

    expected = [run(checkpoint, query) for query in queries]
    assert_alike(run_together(checkpoint, queries, pause=pause), expected)
    assert run(checkpoint, queries[0], pause=pause) == expected[0]
    assert bool(pauses) == checkpoint.model.anatomy.writes
    assert all(one == run(checkpoint, other) for one in found)
