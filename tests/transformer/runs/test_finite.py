"""What is not finite is never hidden, and the first site of it is named."""

import math

import numpy as np
import pytest
import torch

from transformer.checkpoint.load import load
from transformer.errors import QueryError
from transformer.model.cache import KVCache
from transformer.model.taps import NO_TAP, Replacer, tap_of
from transformer.runs.decoding import Prefix, collect, greedy
from transformer.runs.query import Beam, Greedy, Sampling
from transformer.runs.recording_pass import first_site
from transformer.runs.running import replay, run, run_batch

SOURCE = "ba lo mi ta"


@pytest.fixture
def checkpoint(spoil):
    return load(spoil())


@pytest.fixture
def hidden(checkpoint):
    """A model whose queries of cross-attention are NaN: torch's fused kernel makes 0 of them."""
    checkpoint.model.attentions("cross")[0].q_proj.weight.data[0, 0] = math.nan
    return checkpoint


@torch.inference_mode()
def test_a_run_names_the_first_site_that_the_fused_kernel_hides(hidden):
    prefix = Prefix(hidden.model, torch.tensor([hidden.src_tokenizer.encode(SOURCE).ids]), cache=KVCache(2))
    assert collect(greedy(prefix, max_new=3))  # without this the rest would test nothing
    for decoding in (Greedy(), Beam(size=2), Sampling(seed=1)):
        query = hidden.query(SOURCE, decoding=decoding)
        for asked in (
            lambda query=query: run(hidden, query),
            lambda query=query: run_batch(hidden, [query, hidden.query("mi ta ba")], maps=False),
        ):
            with pytest.raises(QueryError, match=r"At decoder\.0\.cross_attn\.queries .*not a number"):
                asked()


@pytest.mark.parametrize("value", [math.nan, pytest.param(math.inf, marks=pytest.mark.deep)])
def test_every_parameter_that_is_used(checkpoint, value):
    """One value of every tensor but the tables of embeddings, of which a sentence reads some rows only."""
    for name, parameter in checkpoint.model.named_parameters():
        if name.endswith("table") or (value == math.inf and "up_proj.weight" in name):
            continue  # ReLU may make a plain 0 of -inf
        with torch.no_grad():
            place = parameter[(slice(0, 1),) * parameter.dim()]
            before, place[:] = place.clone(), value
            with pytest.raises(QueryError, match=r"At (en|de)coder\.[a-z0-9_.]+ this model"):
                run(checkpoint, checkpoint.query(SOURCE, max_new=4))
            place.copy_(before)
    assert np.isfinite(run(checkpoint, checkpoint.query(SOURCE)).log_probs).all()


def test_a_replay_names_what_a_run_does_not_see_and_minus_infinity_in_one_logit_is_seen(checkpoint):
    """relu(-inf) is 0: the run is right, but who looks at the pre-activation is told."""
    checkpoint.model.encoder.layers[1].ffn.up_proj.bias.data[3] = -math.inf
    trace = run(checkpoint, checkpoint.query(SOURCE))
    assert replay(checkpoint, trace, ["encoder.*.ffn.activation"])
    with pytest.raises(QueryError, match=r"encoder\.1\.ffn\.pre_activation"):
        replay(checkpoint, trace, ["encoder.*.ffn.pre_activation"])
    checkpoint.model.decoder.final_norm.bias.data[0] = 3e38
    checkpoint.model.target_table.data[9, 0] = -3e38  # the softmax makes a plain 0 of it
    with pytest.raises(QueryError, match="logits"):
        run(checkpoint, checkpoint.query(SOURCE))


def test_a_tap_may_put_in_what_it_likes_and_what_it_mends_is_not_blamed(checkpoint):
    """Scores of -inf close a key, a logit of -inf forbids a piece: neither is the model's."""

    def closing(i):
        return lambda values: values.index_fill(-1, torch.tensor([i]), -math.inf)

    tap = tap_of(Replacer({"encoder.*.scores": closing(0), "logits": closing(9)}, causal=True))
    trace = run(checkpoint, checkpoint.query(SOURCE, max_new=4), tap=tap)
    assert np.isneginf(trace.log_probs[:, 9]).all()
    values = replay(checkpoint, trace, ["encoder.0.self_attn.scores", "logits"], tap=tap)
    assert np.isneginf(values["encoder.0.self_attn.scores"][..., 0]).all()

    checkpoint.model.attentions("cross")[0].q_proj.weight.data[0, 0] = math.nan
    src, read = torch.tensor([trace.src_ids]), torch.tensor([trace.read_ids])

    def again(tap):
        with torch.inference_mode():
            checkpoint.model(src, read, tap=tap)

    mended = tap_of(Replacer({"decoder.0.cross_attn.queries": torch.nan_to_num}))
    assert first_site(again, tap=NO_TAP) == "decoder.0.cross_attn.queries"
    assert first_site(again, tap=mended) is None
    assert run(checkpoint, checkpoint.query(SOURCE, max_new=2), tap=mended).n_steps
