"""Names, axes and meanings of all hook points (sites) of a model, and of the settings that a hook can replace.

A site is a value that can be seen or replaced. A setting is a parameter, a number or a record that a module uses: it
passes them through the tap like its values (`transformer.model.taps`), so one run can use others while the module keeps
its own. `{layer}` is a layer's number from 0, `{stack}` is "encoder" or "decoder", and `{attn}` a stack's attention, as
in `decoder.2.cross_attn.scoring`.
"""

from transformer.model.anatomy import EVERY_PART, Anatomy, StackName, anatomy
from transformer.model.config import ModelConfig

_ATTENTION = {
    "norm": "[batch, query, d_model] post: output of the norm after the sum; else: input of the sub-layer",
    "projected_queries": "[batch, head, query, d_head] before they are normed or turned; only where they are",
    "queries": "[batch, head, query, d_head] queries as they are multiplied: normed and turned, if the model does so",
    "projected_keys": "[batch, kv_head, key, d_head] before they are normed or turned; only where they are",
    "keys": "[batch, kv_head, key, d_head] keys as they are multiplied, before they enter a cache",
    "values": "[batch, kv_head, key, d_head] projected values, before they enter a cache",
    "mask": "bool, broadcasts to [batch, head, query, key]; True = may attend",
    "bias": "[1, head, query, key] what positions add to the scores; only where they do",
    "scores": "[batch, head, query, key] q . k / sqrt(d_head), with another scale, the bias and the cap if the model "
    "has them; before the mask",
    "weights": "[batch, head, query, key] after mask and softmax; rows sum to 1",
    "heads": "[batch, head, query, d_head] weights . values, before the heads are joined",
    "output": "[batch, query, d_model] after the output projection",
    "residual": "[batch, query, d_model] the stream plus the sub-layer's output",
}
_FEED_FORWARD = {
    "norm": "[batch, query, d_model] post: output of the norm after the sum; else: input of the sub-layer",
    "pre_activation": "[batch, query, d_ff] before the non-linearity",
    "activation": "[batch, query, d_ff] after the non-linearity",
    "output": "[batch, query, d_model] after the second projection",
    "residual": "[batch, query, d_model] the stream plus the sub-layer's output",
}
_EMBEDDING = {
    "tokens": "[batch, token, d_model] token embeddings, scaled if the config says so",
    "positions": "[token, d_model] position vectors; only where a table of them is added",
    "output": "[batch, token, d_model] their sum: the residual stream's start",
}


# What only some models have, by the feature that brings it.
_OUTPUT_NORM = {"output_norm": "[batch, query, d_model] the sub-layer's output after a norm of its own"}
_GATED = {
    "pre_activation": "[batch, query, d_ff] of the gate, before the non-linearity",
    "linear": "[batch, query, d_ff] of the other map, which the gate is multiplied by",
    "activation": "[batch, query, d_ff] their product, which the last projection reads",
}
_TYPES = {"types": "[batch, token, d_model] vectors of the token types"}
_EMBEDDING_NORM = {"sum": "[batch, token, d_model] what the norm after the embedding reads"}
_MLM_HEAD = {
    "pre_activation": "[batch, token, d_model] after the dense map",
    "activation": "[batch, token, d_model] after the non-linearity",
    "output": "[batch, token, d_model] after the norm",
}


def site_table(parts: Anatomy, config: ModelConfig | None = None) -> dict[str, str]:
    """Every site of such models with axes and meaning, `{layer}` for a number; without a config, the paper's."""
    both, gated = config is not None and config.norm == "both", config is not None and config.gated
    sites: dict[str, str] = {}
    for stack in parts.stacks:
        sites |= {f"{stack.name}.embedding.{name}": text for name, text in _embedding(stack.name, config).items()}
        for sublayer in stack.sublayers:
            names = _FEED_FORWARD | (_GATED if gated else {}) if sublayer == "ffn" else _ATTENTION
            names = names | (_OUTPUT_NORM if both else {})
            sites |= {f"{stack.name}.{{layer}}.{sublayer}.{name}": text for name, text in names.items()}
        sites[f"{stack.name}.{{layer}}.output"] = "[batch, token, d_model] the residual stream after the layer"
        sites[f"{stack.name}.output"] = "[batch, token, d_model] after the final norm, if there is one"
    if parts.writes:
        sites["logits"] = "[batch, token, tgt_vocab] scores of the next token, before the softmax"
    if parts.fills:
        sites |= {f"mlm_head.{name}": text for name, text in _MLM_HEAD.items()}
        sites["logits"] = "[batch, token, tgt_vocab] scores of the token at each place, before the softmax"
    return sites


def _embedding(stack: StackName, config: ModelConfig | None) -> dict[str, str]:
    if config is None:
        return _EMBEDDING
    types = _TYPES if config.n_token_types and stack == "encoder" else {}
    return _EMBEDDING | types | (_EMBEDDING_NORM if config.embedding_norm else {})


def sites(config: ModelConfig) -> dict[str, str]:
    """Every site of one model, each layer with its number, with axes and meaning."""
    parts = anatomy(config)
    n_layers: dict[str, int] = {stack.name: stack.n_layers for stack in parts.stacks}
    found: dict[str, str] = {}
    for site, text in site_table(parts, config).items():
        numbers = range(n_layers[site.split(".")[0]]) if "{layer}" in site else (0,)
        found |= {site.replace("{layer}", str(layer)): text for layer in numbers if _has(config, site, layer)}
    return found


def _has(config: ModelConfig, site: str, layer: int) -> bool:
    """Whether a model has a site that only some have."""
    placed = "self_attn" in site and layer not in config.unplaced_layers
    match site.rpartition(".")[2]:
        case "positions":
            return config.placing.adds == "table"
        case "bias":
            return placed and config.placing.adds == "bias"
        case "projected_queries" | "projected_keys":
            return config.qk_norm or (placed and config.placing.adds == "turn")
        case _:
            return True


SITES = site_table(EVERY_PART)
"""All sites that there can be; `sites` says which of them a model has."""


SETTINGS = {
    "{stack}.embedding.scale": "what a row of the table is multiplied by",
    "{stack}.embedding.moves": "a function of places, `transformer.model.positions.Moves`, for rows of the table of "
    "positions; None: as they stand; only where there is a table",
    "{stack}.embedding.norm": "the norm after the embedding's sum, a function of it; only where there is one",
    "{stack}.order.moves": "the same for positions inside attention; only where positions act there",
    "decoder.causal": "who comes before whom: bool [1, 1, query, key]; True = may attend",
    "encoder.padding": "which tokens are no padding: bool [batch, 1, 1, key]; True = may be attended to",
    "decoder.padding": "the same for the target; only for a call that begins with its first token",
    "decoder.source_padding": "the same for the source as cross-attention reads it; None where nothing was said",
    "{stack}.{layer}.{sublayer}.around": "`transformer.model.layers.Around`: norm, residual stream",
    "{stack}.{layer}.{sublayer}.norm": "the norm before it, or after the sum: a function of the stream",
    "{stack}.{layer}.{attn}.scoring": "`transformer.model.attention_scores.Scoring`: how q . k becomes a weight",
    "{stack}.{layer}.{attn}.d_head": "width of the heads into which vectors are cut",
    "{stack}.{layer}.{attn}.joined": "W_Q, W_K, W_V below each other, and their biases; None where "
    "they are not joined, or shall not be used",
    "{stack}.{layer}.{attn}.q_proj.weight": "W_Q [H * d, D]",
    "{stack}.{layer}.{attn}.k_proj.weight": "W_K [G * d, D]; where it is not joined",
    "{stack}.{layer}.{attn}.v_proj.weight": "W_V [G * d, D]; where it is not joined",
    "{stack}.{layer}.{attn}.out_proj.weight": "W_O [D, H * d]",
    "{stack}.{layer}.ffn.function": "the non-linearity: a function of the values before it",
    "{stack}.{layer}.ffn.up_proj.weight": "[F, D]",
    "{stack}.{layer}.ffn.gate_proj.weight": "[F, D]; only where there is a gate",
    "{stack}.{layer}.ffn.down_proj.weight": "[D, F]",
    "{stack}.final_norm": "the norm after the last layer: a function of the stream",
    "mlm_head.proj.weight": "[D, D]; only where there is such a head",
    "output_weight": "what gives logits [V, D]",
}
SETTINGS |= {
    name.replace(".weight", ".bias"): "the bias beside it; None where there is none"
    for name in SETTINGS
    if name.endswith("proj.weight")
}
