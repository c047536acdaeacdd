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
from transformer.runs import reading
from transformer.runs.query import Query
from transformer.runs.running import run_together
from transformer.text.tokenizer import Encoding

pytestmark = pytest.mark.usefixtures("one_thread")

WORDS = ("ba", "lo", "mi", "ta", "ke", "su")
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

    def watched(self, *more):
        queries.extend(self.queries if len(self.queries) == 1 else ())
        return decode(self, *more)

    monkeypatch.setattr(reading.EncodedBatch, "decode", watched)
    return queries


def outcome(checkpoint, query):
    """What a run alone gives or raises."""
    try:
        return run(checkpoint, query)
    except QueryError as error:
        return error


def assert_as_alone(checkpoint, queries, **how):
    """Together the queries have what each has alone, which is given back."""
    expected = [outcome(checkpoint, query) for query in queries]
    assert_alike(run_together(checkpoint, queries, **how), expected)
    return expected


def test_each_trace_is_that_of_a_run_alone(checkpoint):
    sources = ["ba lo mi ta", "mi", "lo ke su ba lo su mi", "ta ta", "ba lo mi ta", "su"]
    forced = {"forced": (7, 5)} if checkpoint.model.anatomy.writes else {}
    changed = (SilentHead(checkpoint.model.anatomy.kinds[0], 0, 1),)
    queries = [
        *(checkpoint.query(source, max_new=9) for source in sources),
        *(checkpoint.query(sources[i], decoding=how, max_new=8) for i, how in enumerate(HOW)),
        checkpoint.query("su ba", max_new=3),
        checkpoint.query("su ba", max_new=9, **forced),
        checkpoint.query("su mi", max_new=9, decoding=Sampling(seed=1), **forced),
        checkpoint.query("ta", max_new=6, decoding=Beam(size=3), hypothesis=2),
        checkpoint.query("ta lo", max_new=6, interventions=changed),
        checkpoint.query("ta lo", max_new=512),
    ]
    expected = assert_as_alone(checkpoint, queries)
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
        assert by_themselves <= len(queries) / 2  # most stay in the batch, or nothing is won; near ties are of rounding


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


def asking(source, **how):
    return Query(checkpoint="hash", source=source, **how)


FEATURES = {
    "norm": st.sampled_from(["pre", "post"]),
    "n_kv_heads": st.just(1),
    "positions": st.just("learned"),
    "tie_output": st.just(True),
    "n_encoder_layers": st.just(1),
}
QUERIES = st.builds(
    lambda words, max_new, decoding: asking(" ".join(words), max_new=max_new, **decoding),
    st.lists(st.sampled_from(WORDS), max_size=12),
    st.integers(1, 20),
    st.sampled_from([{}, {}, *({"decoding": how} for how in HOW)]),
)


@settings(max_examples=8)
@given(st.integers(0, 999), st.fixed_dictionaries({}, optional=FEATURES), st.lists(QUERIES, min_size=1, max_size=12))
def test_random_models_write_in_company_what_they_write_alone(seed, changes, queries):
    assert_as_alone(made_up(seed, **changes), queries)


def test_pieces_that_are_equally_probable_are_chosen_alone(decoded_alone):
    checkpoint = made_up(3, output_bias=True)
    checkpoint.model.output_weight[5] = checkpoint.model.output_weight[4]
    checkpoint.model.output_bias[4:6] = 30.0  # these two and no other are ever chosen
    queries = [asking(word, max_new=4) for word in WORDS]
    found = list(run_together(checkpoint, queries))
    assert decoded_alone == queries
    assert_alike(found, [run(checkpoint, query) for query in queries])


@pytest.mark.parametrize("wrong", [(5, 6, 3), QueryError("not finite"), MemoryError()], ids=str)
def test_what_a_batch_gets_wrong_does_not_reach_a_trace(wrong, monkeypatch):
    """Neither a wrong output nor a failure: those are run one by one."""
    queries = [asking(word, max_new=6, **how) for how in ({}, {"decoding": HOW[0]}) for word in WORDS]
    n_read, decode = [], reading.EncodedBatch.decode

    def write(batch, *args, **named):
        if len(batch.queries) == 1:
            return decode(batch, *args, **named)
        n_read.append(len(batch.queries))
        if isinstance(wrong, Exception):
            raise wrong
        return [reading.DecodedOutput(wrong)] * len(batch.queries)

    monkeypatch.setattr(reading.EncodedBatch, "decode", write)
    assert_as_alone(made_up(4), queries)
    assert isinstance(wrong, Exception) or sum(n_read) == len(queries)  # once, whatever comes of it


def test_one_query_that_is_refused_takes_nobody_along(checkpoint):
    good = [checkpoint.query(source, max_new=5) for source in ("ba lo", "mi ta ba", "su")]
    bad = [checkpoint.query(" "), checkpoint.query("ba " * 60), Query(checkpoint="other", source="ba")]
    found = assert_as_alone(checkpoint, [bad[0], good[0], bad[1], good[1], bad[2], good[2]])
    assert [isinstance(one, QueryError) for one in found] == [True, False] * 3


def test_a_pause_stands_between_the_rounds(checkpoint):
    """What is done in a pause, another run of the same model included, changes nothing."""
    other, found = checkpoint.query("mi ta", max_new=3), []
    queries = [checkpoint.query(source, max_new=9) for source in ("ba lo mi", "ta", "su ke lo")]
    pause = lambda: found.append(run(checkpoint, other))  # noqa: E731
    expected = assert_as_alone(checkpoint, queries, pause=pause)
    assert run(checkpoint, queries[0], pause=pause) == expected[0]
    assert bool(found) == checkpoint.model.anatomy.writes
    assert all(one == run(checkpoint, other) for one in found)
