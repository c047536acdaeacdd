"""Each change of the wiring against a model in NumPy that is wired so: alone, and with two others."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tests.transformer.runs.interventions.plain import Plain, Wires
from tests.transformer.runs.interventions.wired import CASES, model_of
from transformer.model.cache import KVCache
from transformer.runs import recording
from transformer.runs.changing import tap_for
from transformer.runs.decoding import Prefix
from transformer.runs.interventions import parse

SOURCE = [5, 9, 4, 12, 0, 0]  # with padding, where there is an encoder
WRITTEN = [7, 11, 4, 6, 10]
NEVER_BESIDE = ("unguarded-all", "causal-hidden", "causal-inverted")  # rows that are closed throughout, and NaN
FEW = ["both", "decoder", "rotary"]
ONE = [(text, model) for text, (models, _) in CASES.items() for model in models]


def together(text, model):
    """The text and two others that can be made in the same model and change other things."""
    texts = [other for other, (models, _) in CASES.items() if model in models]
    place, words = texts.index(text), {text.split("-")[0]}
    found = [text]
    for other in texts[place + 1 :] + texts[:place]:
        word = other.split("-")[0]
        if len(found) < 3 and word not in words and other not in NEVER_BESIDE:
            words.add(word)
            found.append(other)
    return found


def expected(model, texts, source, start):
    wires = Wires()
    for text in texts:
        CASES[text][1](wires)
    plain = Plain(model, wires)
    return [plain.log_probs(source, [*start, *WRITTEN[:n]]) for n in range(len(WRITTEN) + 1)]


@torch.inference_mode()
def written(model, tap, source, *, cached):
    ids = torch.tensor([source])
    cache = KVCache(model.config.n_decoder_layers) if cached else None
    prefix = Prefix(model, ids, cache=cache, tap=tap)
    found = []
    for piece in [*WRITTEN, None]:
        found.append(prefix.next_log_probs()[0].numpy())
        if piece is not None:
            prefix.append(torch.tensor([piece]))
    return found


@torch.inference_mode()
def recorded(model, tap, source, start):
    ids, read = torch.tensor([source]), torch.tensor([[*start, *WRITTEN]])
    memory, _ = recording.read_source(model, ids, [], tap=tap)
    values = recording.read_target(model, read, memory, model.source_mask(ids), ["logits"], tap=tap)
    return values["logits"][0, len(start) - 1 :].log_softmax(-1).numpy()


def check(model_name, texts, dtype, tolerance):
    model = model_of(model_name, dtype)
    reads = model.anatomy.reads
    source, start = (SOURCE, [2]) if reads else (SOURCE[:4], SOURCE[:4])
    reference = expected(model, texts, source, start)
    tap = tap_for(parse("_".join(texts)), SimpleNamespace(config=model.config, model=model))
    for cached in (True, False):
        np.testing.assert_allclose(written(model, tap, source, cached=cached), reference, atol=tolerance, rtol=0)
    np.testing.assert_allclose(recorded(model, tap, source, start), reference, atol=tolerance, rtol=0)


@pytest.mark.parametrize(("text", "model"), ONE)
def test_a_change_is_what_a_model_wired_so_computes(text, model):
    check(model, [text], torch.float64, 1e-10)


@pytest.mark.parametrize(("text", "model"), [(text, model) for text, model in ONE if model in FEW])
def test_so_it_is_with_two_others(text, model):
    check(model, together(text, model), torch.float64, 1e-10)


@pytest.mark.parametrize("text", CASES)
def test_so_it_is_in_32_bits(text):
    check(CASES[text][0][0], [text], torch.float32, 1e-5)
