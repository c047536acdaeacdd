"""The residual stream and its norms are sums over recorded values, and torch's own layer norm."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from transformer.analysis import stream
from transformer.checkpoint.load import load
from transformer.runs.running import replay, run


@pytest.fixture(scope="module", params=["checkpoint_folder", "shared_checkpoint_folder"])
def checkpoint(request):
    """Pre-norm with a final norm, and post-norm without; no γ of 1 and no β of 0, which would hide mistakes."""
    loaded = load(request.getfixturevalue(request.param))
    torch.manual_seed(3)
    for name, parameter in loaded.model.named_parameters():
        if "norm" in name:
            parameter.data += 0.3 * torch.randn_like(parameter)
    return loaded


@pytest.fixture(scope="module")
def trace(checkpoint):
    return run(checkpoint, checkpoint.query("ba lo mi ta", max_new=9))


def normed(x, norm):
    return F.layer_norm(torch.tensor(x), x.shape[-1:], norm.weight, norm.bias, norm.eps).numpy()


def by_hand(checkpoint, trace, stack):
    """The stream after the embedding and each sub-layer, from the outputs alone; outputs; norms [place][T, D]."""
    found, config, owner = replay(checkpoint, trace, [f"{stack}.*"]), checkpoint.config, checkpoint.model.stack(stack)
    streams, outputs, norms = [found[f"{stack}.embedding.output"]], [], []
    for number, layer in enumerate(owner.layers):
        for part in checkpoint.model.anatomy.stack(stack).sublayers:
            outputs.append(found[f"{stack}.{number}.{part}.output"])
            norm, added = getattr(layer, f"{part}_residual").norm, streams[-1] + outputs[-1]
            norms.append((norm, streams[-1] if config.norm == "pre" else added))
            streams.append(added if config.norm == "pre" else normed(added, norm))
    if config.final_norm:
        norms.append((owner.final_norm, streams[-1]))
        streams.append(normed(streams[-1], owner.final_norm))
    return np.stack(streams).astype(float), np.stack(outputs).astype(float), norms


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_the_stream_is_the_embedding_plus_what_was_added_and_every_norm_is_torchs(checkpoint, trace, stack):
    config, model = checkpoint.config, checkpoint.model
    recorded = replay(checkpoint, trace, stream.sites(config, stack))
    found = stream.measure(recorded, config, stack, n_tokens=trace.n_tokens(stack))
    streams, outputs, norms = by_hand(checkpoint, trace, stack)
    assert len(found.places) == len(streams) == len(outputs) + 1 + config.final_norm
    assert [place.part == "final" for place in found.places] == [False] * (len(streams) - 1) + [config.final_norm]
    np.testing.assert_allclose(found.size, np.sqrt((streams**2).mean(axis=-1)), rtol=1e-5)
    np.testing.assert_allclose(found.before, found.size[: len(outputs)], rtol=1e-9)
    np.testing.assert_allclose(found.added, np.sqrt((outputs**2).mean(axis=-1)), rtol=1e-5)
    for cosines, one, other in (
        (found.kept, streams, np.broadcast_to(streams[0], streams.shape)),
        (found.aligned, outputs, streams[: len(outputs)]),
    ):
        expected = F.cosine_similarity(torch.tensor(one), torch.tensor(other.copy()), dim=-1)
        np.testing.assert_allclose(cosines, expected, atol=1e-5)
    for place, (norm, read) in zip(stream.norm_places(config, stack), norms, strict=True):
        seen, after = stream.normed(recorded, model, stack, place, n_tokens=4), normed(read[:4], norm)
        np.testing.assert_allclose(seen.before, read[:4], atol=2e-5)
        np.testing.assert_allclose(seen.after, after, atol=2e-5)
        moments = [values.mean(1) for values in (read[:4], after)] + [values.std(1) for values in (read[:4], after)]
        own = [seen.mean_before, seen.mean_after, seen.deviation_before, seen.deviation_after]
        np.testing.assert_allclose(own, moments, atol=1e-5)
        np.testing.assert_allclose(seen.standardised.std(1), 1, atol=1e-2)
        assert seen.difference < 1e-5


def test_a_vector_of_length_0_has_the_cosine_0():
    zero, one = np.zeros((1, 4)), np.ones((1, 4))
    assert stream.cosine(zero, one).tolist() == stream.cosine(zero, zero).tolist() == [0.0]
    assert stream.cosine(one, -one).tolist() == [-1.0]
