"""The table of all sites: what every named value inside a model is called, which axes it has and what it is.

`{layer}` stands for a layer's number from 0. See `transformer.model.tap` for how a site is seen or replaced.
"""

from transformer.model.anatomy import EVERY_PART, Anatomy, anatomy
from transformer.model.config import ModelConfig

_ATTENTION = {
    "norm": "[batch, query, d_model] pre: input of the sub-layer; post: output of the sub-layer's norm",
    "queries": "[batch, head, query, d_head] projected queries",
    "keys": "[batch, kv_head, key, d_head] projected keys, before they enter a cache",
    "values": "[batch, kv_head, key, d_head] projected values, before they enter a cache",
    "mask": "bool, broadcasts to [batch, head, query, key]; True = may attend",
    "scores": "[batch, head, query, key] q . k / sqrt(d_head), before the mask",
    "weights": "[batch, head, query, key] after mask and softmax; rows sum to 1",
    "heads": "[batch, head, query, d_head] weights . values, before the heads are joined",
    "output": "[batch, query, d_model] after the output projection",
    "residual": "[batch, query, d_model] the stream plus the sub-layer's output",
}
_FEED_FORWARD = {
    "norm": "[batch, query, d_model] pre: input of the sub-layer; post: output of the sub-layer's norm",
    "pre_activation": "[batch, query, d_ff] before the non-linearity",
    "activation": "[batch, query, d_ff] after the non-linearity",
    "output": "[batch, query, d_model] after the second projection",
    "residual": "[batch, query, d_model] the stream plus the sub-layer's output",
}
_EMBEDDING = {
    "tokens": "[batch, token, d_model] token embeddings, scaled if the config says so",
    "positions": "[token, d_model] position vectors",
    "output": "[batch, token, d_model] their sum: the residual stream's start",
}


def site_table(parts: Anatomy) -> dict[str, str]:
    """Every site of such models, `{layer}` in the place of a number, with its axes and what it is."""
    sites: dict[str, str] = {}
    for stack in parts.stacks:
        sites |= {f"{stack.name}.embedding.{name}": text for name, text in _EMBEDDING.items()}
        for sublayer in stack.sublayers:
            names = _FEED_FORWARD if sublayer == "ffn" else _ATTENTION
            sites |= {f"{stack.name}.{{layer}}.{sublayer}.{name}": text for name, text in names.items()}
        sites[f"{stack.name}.{{layer}}.output"] = "[batch, token, d_model] the residual stream after the layer"
        sites[f"{stack.name}.output"] = "[batch, token, d_model] after the final norm, if there is one"
    if parts.writes:
        sites["logits"] = "[batch, token, tgt_vocab] scores of the next piece, before the softmax"
    return sites


def sites(config: ModelConfig) -> dict[str, str]:
    """Every site of one model, each layer by its number, with its axes and what it is."""
    parts = anatomy(config)
    n_layers: dict[str, int] = {stack.name: stack.n_layers for stack in parts.stacks}
    found: dict[str, str] = {}
    for site, text in site_table(parts).items():
        numbers = range(n_layers[site.split(".")[0]]) if "{layer}" in site else (0,)
        found |= {site.replace("{layer}", str(layer)): text for layer in numbers}
    return found


SITES = site_table(EVERY_PART)
"""All sites that there can be: those of a model with an encoder and a decoder."""
