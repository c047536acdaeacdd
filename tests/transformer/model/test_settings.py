"""Every setting of the table passes through the tap in some model, and nothing else does."""

import re

import torch

from tests.transformer.tiny import DECODER, ENCODER, padded_source, random_ids, target_ids, tiny_model
from transformer.model.sites import SETTINGS
from transformer.model.taps import Rewirer, tap_of

PARTS = {
    "{stack}": "(encoder|decoder)",
    "{layer}": r"\d+",
    "{sublayer}": "(self_attn|cross_attn|ffn)",
    "{attn}": "(self_attn|cross_attn)",
}
MODELS = [
    {},
    {"norm": "post", "final_norm": False, "positions": "learned", "embedding_norm": True},
    {"gated": True, "norm_kind": "rms", "norm_bias": False, "positions": "relative"},
    {**DECODER, "positions": "rotary"},
    {**DECODER, "positions": "alibi", "parallel_residual": True},
    {**ENCODER, "mlm_head": True},
]


def pattern(name):
    """A name of the table as a regular expression."""
    name = re.escape(name).replace(r"\{", "{").replace(r"\}", "}")
    for part, found in PARTS.items():
        name = name.replace(part, found)
    return name


@torch.inference_mode()
def asked_for(model):
    """The names of all settings that one call asks for."""
    names = set()

    class Listener(Rewirer):
        def rewired(self, name, value):
            names.add(name)
            return value

    vocabulary = min(model.config.src_vocab_size, model.config.tgt_vocab_size)
    src, tgt = (padded_source(), target_ids()) if vocabulary >= 17 else (random_ids(3, 6, vocab=vocabulary),) * 2
    model(src, tgt, tap=tap_of(Listener({})))
    return names


def strange(names):
    """Names that are not in the table."""
    return [name for name in names if not any(re.fullmatch(pattern(one), name) for one in SETTINGS)]


def test_every_setting_passes_through_the_tap_somewhere_and_nothing_else_does():
    seen = set().union(*(asked_for(tiny_model(**changes)) for changes in MODELS))
    assert [one for one in SETTINGS if not any(re.fullmatch(pattern(one), name) for name in seen)] == []
    assert not strange(seen)
