"""A decoder alone goes on with its prompt, and an encoder alone reads, each as one pass says."""

import numpy as np
import pytest
import torch

from transformer import run
from transformer.errors import QueryError
from transformer.runs.decoding import Prefix
from transformer.runs.running import replay

PROMPT = "the red fox"


def test_maps_masks_and_labels_cover_prompt_and_continuation_which_share_the_room(decoder):
    trace = run(decoder, decoder.query(PROMPT, max_new=6))
    n_prompt, n = len(trace.src_ids), len(trace.read_ids)
    assert (trace.kinds, trace.src_ids[0]) == (("decoder",), decoder.config.bos_id)
    assert n == n_prompt + trace.n_steps - 1 == trace.n_tokens("decoder")
    assert trace.maps("decoder").shape == (3, 3, n, n)
    assert (trace.step(0).decoder_rows.shape, trace.step(0).cross_rows.shape) == ((3, 3, n_prompt), (0, 0, 0))
    assert (trace.decoder_mask == np.tri(n, dtype=bool)).all()
    labels = trace.row_labels()
    assert [label.reads for label in labels] == list(trace.src_tokens + trace.tgt_tokens[:-1])
    assert [label.predicts for label in labels] == [None] * (n_prompt - 1) + list(trace.tgt_tokens)
    with pytest.raises(QueryError, match="no 'cross' attention in these maps, only these kinds: decoder"):
        trace.maps("cross")
    with pytest.raises(QueryError, match="prompts decoded together must have the same length and no padding"):
        Prefix(decoder.model, torch.tensor([[5, 6], [5, 0]]), cache=None)
    room = 24 - n_prompt + 1
    trace = run(decoder, decoder.query(PROMPT, max_new=512, forced=(9,) * room))
    assert (trace.n_steps, len(trace.read_ids)) == (room, 24)
    with pytest.raises(QueryError, match=f"{room + 1} tokens are forced, but decoder alone can write at most {room}"):
        run(decoder, decoder.query(PROMPT, max_new=512, forced=(9,) * (room + 1)))


def test_an_encoder_alone_has_maps_and_no_steps(encoder):
    trace = run(encoder, encoder.query(PROMPT))
    n = len(trace.src_ids)
    assert (trace.kinds, trace.n_steps, trace.output_text) == (("encoder",), 0, "")
    assert (trace.tgt_ids, trace.read_ids, trace.texts, trace.row_labels()) == ((), (), (), ())
    assert (trace.stop_reason, trace.log_prob, len(trace.entropies()), len(trace.to_frame())) == ("no decoder", 0, 0, 0)
    assert trace.maps("encoder").shape == (2, 3, n, n)
    assert (trace.n_tokens("encoder"), trace.n_tokens("decoder")) == (n, 0)
    found = replay(encoder, trace, ["encoder.*.weights"])
    np.testing.assert_allclose(found["encoder.1.self_attn.weights"], trace.encoder_self[1], atol=1e-6)
    with pytest.raises(QueryError, match="this model generates no output"):
        trace.step(0)
    with pytest.raises(QueryError, match="is an encoder-only model and generates no output"):
        run(encoder, encoder.query(PROMPT, forced=(5,)))
