"""The residual stream and its norms are sums over recorded values, and torch's own layer norm."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import transformer
from transformer.analysis import stream
from transformer.runs.running import replay, run


@pytest.fixture(scope="module", params=["checkpoint_folder", "shared_checkpoint_folder"])
def checkpoint(request):
    """Pre-norm with a final norm, and post-norm without; no γ of 1 and no β of 0, which would hide mistakes."""
    loaded = transformer.load(request.getfixturevalue(request.param))
    torch.manual_seed(3)
    for name, parameter in loaded.model.named_parameters():
        if "norm" in name:
            parameter.data += 0.3 * torch.randn_like(parameter)
    return loaded


@pytest.fixture(scope="module")
def trace(checkpoint):
    return run(checkpoint, checkpoint.query("ba lo mi ta", max_new=9))


def recorded(checkpoint, trace, stack):
    return replay(checkpoint, trace, stream.sites(checkpoint.config, stack))


def by_hand(checkpoint, trace, stack):
    """The stream after the embedding and each sub-layer, added up from the outputs alone [place][T, D]."""
    found = replay(checkpoint, trace, [f"{stack}.*"])
    owner = getattr(checkpoint.model, stack)
    parts = ("self_attn", "ffn") if stack == "encoder" else ("self_attn", "cross_attn", "ffn")
    here = torch.tensor(found[f"{stack}.embedding.output"])
    streams, outputs = [here], []
    for number, layer in enumerate(owner.layers):
        for part in parts:
            outputs.append(torch.tensor(found[f"{stack}.{number}.{part}.output"]))
            here = here + outputs[-1]
            if checkpoint.config.norm == "post":
                norm = getattr(layer, f"{part}_residual").norm
                here = F.layer_norm(here, here.shape[-1:], norm.weight, norm.bias, norm.eps)
            streams.append(here)
    if checkpoint.config.final_norm:
        norm = owner.final_norm
        streams.append(F.layer_norm(here, here.shape[-1:], norm.weight, norm.bias, norm.eps))
    return [s.detach().numpy() for s in streams], [o.detach().numpy() for o in outputs]


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_the_stream_is_the_embedding_plus_what_was_added(checkpoint, trace, stack):
    config = checkpoint.config
    n = len(trace.src_ids if stack == "encoder" else trace.read_ids)
    found = stream.measure(recorded(checkpoint, trace, stack), config, stack, n_tokens=n)
    streams, outputs = by_hand(checkpoint, trace, stack)
    assert len(found.places) == len(streams) == 2 * (2 if stack == "encoder" else 3) + 1 + config.final_norm
    assert [place.part == "final" for place in found.places] == [False] * (len(streams) - 1) + [config.final_norm]
    for place, vectors in enumerate(streams):
        for token in range(n):
            x, e = vectors[token].astype(float), streams[0][token].astype(float)
            assert found.size[place, token] == pytest.approx(math.sqrt(sum(v * v for v in x) / len(x)), rel=1e-5)
            expected = float(x @ e) / (math.dist(x, 0 * x) * math.dist(e, 0 * e))
            assert found.kept[place, token] == pytest.approx(expected, abs=1e-5)
    np.testing.assert_allclose(found.kept[0], 1)
    for place, output in enumerate(outputs):
        np.testing.assert_allclose(found.before[place], found.size[place], rtol=1e-9)
        np.testing.assert_allclose(found.added[place], np.sqrt((output**2).mean(axis=1)), rtol=1e-5)
        expected = torch.cosine_similarity(torch.tensor(output), torch.tensor(streams[place]), dim=1)
        np.testing.assert_allclose(found.aligned[place], expected, atol=1e-5)


def test_a_vector_of_length_0_has_the_cosine_0():
    zero, one = np.zeros((1, 4)), np.ones((1, 4))
    assert stream.cosine(zero, one).tolist() == stream.cosine(zero, zero).tolist() == [0.0]
    assert stream.cosine(one, -one).tolist() == [-1.0]


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_every_norm_is_torchs_and_named_in_order(checkpoint, trace, stack):
    values = recorded(checkpoint, trace, stack)
    owner = getattr(checkpoint.model, stack)
    places = stream.norm_places(checkpoint.config, stack)
    streams, outputs = by_hand(checkpoint, trace, stack)
    for number, place in enumerate(places):
        found = stream.normed(values, checkpoint.model, stack, place, n_tokens=4)
        read = streams[number] if place.layer is None or checkpoint.config.norm == "pre" else None
        read = streams[number] + outputs[number] if read is None else read
        norm = (
            owner.final_norm
            if place.layer is None
            else getattr(owner.layers[place.layer], f"{place.part}_residual").norm
        )
        expected = (
            F.layer_norm(torch.tensor(read[:4]), read.shape[1:], norm.weight, norm.bias, norm.eps).detach().numpy()
        )
        np.testing.assert_allclose(found.before, read[:4], atol=2e-5)
        np.testing.assert_allclose(found.after, expected, atol=2e-5)
        for name, vectors in (("before", read[:4]), ("after", expected)):
            np.testing.assert_allclose(getattr(found, f"mean_{name}"), vectors.mean(1), atol=1e-5)
            np.testing.assert_allclose(getattr(found, f"deviation_{name}"), vectors.std(1), atol=1e-5)
        np.testing.assert_allclose(found.standardised.std(1), 1, atol=1e-2)
        assert found.difference < 1e-5
