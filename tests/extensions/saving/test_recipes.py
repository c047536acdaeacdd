"""The recipes of docs/library.md for other programs run, with stand-ins that check what these programs take."""

import re
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch

import transformer
from tests.source_code import ROOT

PAGE = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
THERE, BACK = re.findall(r"```py\n(.*?)```", PAGE.split("### In other programs")[1].split("\n## ")[0], flags=re.DOTALL)


@pytest.fixture(scope="module")
def trace():
    return transformer.load("reverse").run("glass")


def test_a_run_is_shown_by_other_programs(trace, monkeypatch):
    seen = {}

    def head_view(*, encoder_attention, decoder_attention, cross_attention, encoder_tokens, decoder_tokens):
        """Lists with [1, head, query, key] of each layer, and a token for each row and column, as of BertViz 1.4.1."""
        sizes = {"encoder": [len(encoder_tokens)] * 2, "decoder": [len(decoder_tokens)] * 2}
        sizes["cross"] = [len(decoder_tokens), len(encoder_tokens)]
        given = {"encoder": encoder_attention, "decoder": decoder_attention, "cross": cross_attention}
        for kind, layers in given.items():
            assert all(list(layer.shape) == [1, 4, *sizes[kind]] for layer in layers)
        seen["bertviz"] = given

    def attention_heads(*, attention, tokens):
        """[head, query, key] and a token for each place, as of circuitsvis 1.43.3."""
        assert attention.shape == (4, len(tokens), len(tokens))
        seen["circuitsvis"] = attention

    modules = {"bertviz": {"head_view": head_view}, "circuitsvis": {}}
    modules["circuitsvis.attention"] = {"attention_heads": attention_heads}
    for name, content in modules.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    exec(THERE, {"trace": trace})
    assert np.array_equal(torch.cat(seen["bertviz"]["cross"]).numpy(), trace.cross)
    assert np.array_equal(seen["circuitsvis"].numpy(), trace.decoder_self[0])


def test_what_other_programs_computed_is_given_maps(trace):
    patterns = [torch.tensor(layer)[None] for layer in trace.decoder_self]
    side = [SimpleNamespace(token=token) for token in "abc"]
    attributions = torch.randn(3, 2, generator=torch.Generator().manual_seed(0))  # [source, token that was written]
    found = SimpleNamespace(source_attributions=attributions, source=side, target=side)  # begins with the start piece
    names = {
        "transformer": transformer,
        "cache": {("pattern", layer): one for layer, one in enumerate(patterns)},
        "model": SimpleNamespace(cfg=SimpleNamespace(n_layers=2), to_str_tokens=list),
        "text": trace.read_tokens,
        "attributed": SimpleNamespace(aggregate=lambda: [found]),
    }
    cache, inseq = BACK.split("# inseq")
    exec(cache, names)
    assert np.array_equal(names["maps"].maps("decoder"), trace.decoder_self)
    assert np.array_equal(names["maps"].mask("decoder"), trace.decoder_mask)
    exec(f"#{inseq}", names)
    assert np.array_equal(names["maps"].maps("cross")[0, 0], attributions.T.numpy())
    assert names["maps"].of("cross").queries == ("b", "c")
