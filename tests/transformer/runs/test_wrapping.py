"""What stands around a text, what an output begins with, what is banned and what ends it are obeyed."""

from dataclasses import replace

import numpy as np
import pytest

from tests.transformer.alike import assert_alike
from transformer import Beam, Greedy, Sampling, run, run_batch
from transformer.errors import QueryError
from transformer.model.transformer import Transformer
from transformer.runs.running import run_together

TEXT = "ba lo mi ta"
DECODINGS = [Greedy(), Beam(size=3), Sampling(temperature=1.5, seed=4)]


def changed(checkpoint, **changes):
    """The same parameters under another config; its hash keeps, as nothing but the test looks at it."""
    config = replace(checkpoint.config, **changes)
    model = Transformer(config)
    model.load_state_dict(checkpoint.model.state_dict())
    return replace(checkpoint, config=config, model=model.requires_grad_(False).eval())


def runs(checkpoint, *, max_new=9, **how):
    return run(checkpoint, checkpoint.query(TEXT, max_new=max_new, **how))


@pytest.fixture(params=["pair", "decoder"])
def either(request):
    return request.getfixturevalue(request.param)


def test_ids_stand_around_the_text(pair):
    text = pair.src_tokenizer.encode(TEXT).ids
    wrapped = changed(pair, source_prefix=(9, 8), source_suffix=(7,), prepend_source_bos=True)
    trace = runs(wrapped)
    assert trace.src_ids == (2, 9, 8, *text, 3, 7)
    assert len(trace.src_tokens) == trace.maps("cross").shape[-1] == len(text) + 5
    assert runs(changed(pair, append_source_eos=False)).src_ids == text
    with pytest.raises(QueryError, match="reads at most 32"):
        run(wrapped, wrapped.query(f"{TEXT} " * 14))


@pytest.mark.parametrize("decoding", DECODINGS)
def test_an_output_begins_as_the_model_is_forced_to(pair, decoding):
    forced = changed(pair, forced_ids=(9, 7))
    trace, as_query = runs(forced, decoding=decoding), runs(pair, decoding=decoding, forced=(9, 7))
    assert trace.tgt_ids[:2] == (9, 7)
    assert [trace.step(t).forced for t in range(3)] == [True, True, False]
    assert trace.tgt_ids == as_query.tgt_ids
    assert np.array_equal(trace.log_probs, as_query.log_probs)
    # The reader's piece in its place, the model's after it.
    assert runs(forced, decoding=decoding, forced=(11,)).tgt_ids[:2] == (11, 7)


@pytest.mark.parametrize("decoding", DECODINGS)
def test_banned_pieces_are_never_written_and_any_end_piece_ends_the_output(either, decoding):
    free = runs(either, decoding=decoding).tgt_ids
    banned = changed(either, banned_ids=tuple({*free} - {3}))
    trace, closed = runs(banned, decoding=decoding), {0, *banned.config.banned_ids}
    assert closed.isdisjoint(trace.tgt_ids)
    with pytest.raises(QueryError, match="config bans it"):
        runs(banned, forced=(banned.config.banned_ids[0],))
    if isinstance(decoding, Sampling):
        drawn = {c.id: c.sampling_probability for c in trace.step(0, top_k=100).candidates}
        assert all(drawn[i] == 0 for i in closed)

    ending, upto = changed(either, further_eos_ids=(free[2],)), free[: free.index(free[2]) + 1]
    trace = runs(ending, decoding=decoding, forced=upto[:-1] or upto)
    assert not isinstance(decoding, Greedy) or trace.tgt_ids == upto
    assert {3, free[2]}.isdisjoint(trace.tgt_ids[:-1])
    trace = runs(ending, decoding=decoding, forced=upto)
    assert (trace.tgt_ids, trace.stop_reason) == (upto, "end of sentence")
    with pytest.raises(QueryError, match="after the end"):
        runs(ending, forced=(free[2], 5))


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(
    "changes",
    [{"forced_ids": (9,), "banned_ids": (7, 8), "further_eos_ids": (11,), "source_prefix": (5,)}, {"pad_id": None}],
)
def test_together_is_as_alone(either, changes):
    checkpoint, texts = changed(either, **changes), (TEXT, "mi", "ba lo mi su")
    queries = [
        checkpoint.query(text, max_new=8, decoding=how) for text in texts for how in (Greedy(), Sampling(seed=3))
    ]
    assert_alike(run_together(checkpoint, queries), [run(checkpoint, query) for query in queries])


def test_a_model_may_have_no_padding_unknown_or_start_piece(decoder):
    bare = changed(decoder, pad_id=None, unk_id=None, bos_id=None, prepend_source_bos=False)
    trace = runs(bare)
    assert (trace.pad_id, trace.never_written) == (None, ())
    assert trace.n_tokens("decoder") == trace.first_row + trace.n_steps
    assert 0 in trace.tgt_ids or trace.tgt_ids == runs(changed(decoder, prepend_source_bos=False)).tgt_ids
    one, other = (bare.query(text, max_new=9) for text in (TEXT, f"{TEXT} su"))
    with pytest.raises(QueryError, match="no padding token"):
        run_batch(bare, [one, other])
    assert run_batch(bare, [one, replace(one, decoding=Sampling(seed=1))])[0].tgt_ids == trace.tgt_ids
