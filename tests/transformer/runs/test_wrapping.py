"""What stands around a text, what an output begins with, what is banned and what ends it are obeyed."""

import dataclasses
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.transformer.alike import assert_alike
from transformer import Beam, Greedy, Sampling, run, run_batch
from transformer.errors import QueryError
from transformer.model.transformer import Transformer
from transformer.runs.dynamic_batching import run_together

TEXT = "ba lo mi ta"
DECODINGS = [Greedy(), Beam(size=3), Sampling(temperature=1.5, seed=4)]
GPT_2 = {"pad_id": None, "unk_id": None, "bos_id": None, "prepend_source_bos": False}


def changed(checkpoint, **changes):
    """The same parameters under another config; its hash keeps, as nothing but the test looks at it."""
    config = replace(checkpoint.config, **changes)
    model = Transformer(config)
    model.load_state_dict(checkpoint.model.state_dict())
    return dataclasses.replace(checkpoint, config=config, model=model.requires_grad_(False).eval())


def ids_of(checkpoint, **how):
    return run(checkpoint, checkpoint.query(TEXT, max_new=9, **how)).tgt_ids


def test_ids_stand_around_the_text(pair):
    text = pair.src_tokenizer.encode(TEXT).ids
    wrapped = changed(pair, source_prefix=(9, 8), source_suffix=(7,), prepend_source_bos=True)
    trace = run(wrapped, wrapped.query(TEXT, max_new=3))
    assert trace.src_ids == (2, 9, 8, *text, 3, 7)
    assert len(trace.src_tokens) == trace.maps("cross").shape[-1] == len(text) + 5
    bare = changed(pair, append_source_eos=False)
    assert run(bare, bare.query(TEXT, max_new=3)).src_ids == text
    with pytest.raises(QueryError, match="reads at most 32"):
        run(wrapped, wrapped.query("ba lo mi ta " * 14, max_new=3))


@pytest.mark.parametrize("decoding", DECODINGS)
def test_an_output_begins_as_the_model_is_forced_to(pair, decoding):
    forced = changed(pair, forced_ids=(9, 7))
    trace = run(forced, forced.query(TEXT, max_new=9, decoding=decoding))
    assert trace.tgt_ids[:2] == (9, 7)
    assert [trace.step(t).forced for t in range(3)] == [True, True, False]
    as_query = run(pair, pair.query(TEXT, max_new=9, decoding=decoding, forced=(9, 7)))
    assert trace.tgt_ids == as_query.tgt_ids
    assert np.array_equal(trace.log_probs, as_query.log_probs)
    other = run(forced, forced.query(TEXT, max_new=9, decoding=decoding, forced=(11,)))
    assert other.tgt_ids[:2] == (11, 7)  # the reader's piece in its place, the model's after it


@pytest.mark.parametrize("decoding", DECODINGS)
@pytest.mark.parametrize("which", ["pair", "decoder"])
def test_banned_pieces_are_never_written(which, decoding, request):
    checkpoint = request.getfixturevalue(which)
    free = ids_of(checkpoint, decoding=decoding)
    banned = changed(checkpoint, banned_ids=tuple({*free} - {3}))
    trace = run(banned, banned.query(TEXT, max_new=9, decoding=decoding))
    assert not set(trace.tgt_ids) & {0, *banned.config.banned_ids}
    with pytest.raises(QueryError, match="config bans it"):
        run(banned, banned.query(TEXT, forced=(banned.config.banned_ids[0],)))
    if isinstance(decoding, Sampling):
        drawn = {c.id: c.sampling_probability for c in trace.step(0, top_k=100).candidates}
        assert all(drawn[i] == 0 for i in (0, *banned.config.banned_ids))


@pytest.mark.parametrize("decoding", DECODINGS)
@pytest.mark.parametrize("which", ["pair", "decoder"])
def test_any_end_piece_ends_the_output(which, decoding, request):
    checkpoint = request.getfixturevalue(which)
    free = ids_of(checkpoint, decoding=decoding)
    ending = changed(checkpoint, further_eos_ids=(free[2],))
    upto = free[: free.index(free[2]) + 1]
    trace = run(ending, ending.query(TEXT, max_new=9, decoding=decoding, forced=upto[:-1] or upto))
    if isinstance(decoding, Greedy):
        assert trace.tgt_ids == upto
    assert not set(trace.tgt_ids[:-1]) & {3, free[2]}
    trace = run(ending, ending.query(TEXT, max_new=9, decoding=decoding, forced=upto))
    assert trace.tgt_ids == upto
    assert trace.stop_reason == "end of sentence"
    with pytest.raises(QueryError, match="after the end"):
        run(ending, ending.query(TEXT, forced=(free[2], 5)))


@pytest.mark.parametrize("changes", [
    {"forced_ids": (9,), "banned_ids": (7, 8), "further_eos_ids": (11,), "source_prefix": (5,)},
    {"pad_id": None},
])  # fmt: skip
@pytest.mark.parametrize("which", ["pair", "decoder"])
def test_together_is_as_alone(which, changes, request):
    checkpoint = changed(request.getfixturevalue(which), **changes)
    queries = [checkpoint.query(text, max_new=8, decoding=how)
               for text in (TEXT, "mi", "ba lo mi su") for how in (Greedy(), Sampling(seed=3))]  # fmt: skip
    torch.set_num_threads(1)
    assert_alike(run_together(checkpoint, queries), [run(checkpoint, query) for query in queries])


def test_a_model_may_have_no_padding_unknown_or_start_piece(decoder):
    bare = changed(decoder, **GPT_2)
    padded = changed(decoder, prepend_source_bos=False)
    trace = run(bare, bare.query(TEXT, max_new=6))
    assert trace.pad_id is None
    assert trace.never_written == ()
    assert trace.n_tokens("decoder") == trace.first_row + trace.n_steps
    if 0 not in trace.tgt_ids:
        assert trace.tgt_ids == run(padded, padded.query(TEXT, max_new=6)).tgt_ids
    one, other = (bare.query(text, max_new=6) for text in (TEXT, "ba lo mi ta su"))
    with pytest.raises(QueryError, match="no padding token"):
        run_batch(bare, [one, other])
    same = run_batch(bare, [one, replace(one, decoding=Sampling(seed=1))])
    assert same[0].tgt_ids == trace.tgt_ids
