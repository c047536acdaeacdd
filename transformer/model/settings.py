"""The table of all settings: the name and meaning of every parameter, number or record that a module uses.

A module passes them through the tap like its values (`transformer.model.taps`), so one run can use others while the
module keeps its own. `{layer}` is a layer's number from 0, `{stack}` is "encoder" or "decoder", and `{attn}` a
stack's attention, as in `decoder.2.cross_attn.scoring`.
"""

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
    "{stack}.{layer}.{attn}.scoring": "`transformer.model.attention_scores.Scoring`: how a score is made of q . k, and weights",
    "{stack}.{layer}.{attn}.d_head": "width of the heads into which vectors are cut",
    "{stack}.{layer}.{attn}.joined": "W_Q, W_K, W_V below each other, and their biases; None where "
    "they are not joined, or shall not be used",
    "{stack}.{layer}.{attn}.q_proj.weight": "W_Q [H * d, D]",
    "{stack}.{layer}.{attn}.k_proj.weight": "W_K [G * d, D]; where it is not joined",
    "{stack}.{layer}.{attn}.v_proj.weight": "W_V [G * d, D]; where it is not joined",
    "{stack}.{layer}.{attn}.out_proj.weight": "W_O [D, H * d]",
    "{stack}.{layer}.ffn.up_proj.weight": "[F, D]",
    "{stack}.{layer}.ffn.gate_proj.weight": "[F, D]; only where there is a gate",
    "{stack}.{layer}.ffn.down_proj.weight": "[D, F]",
    "{stack}.final_norm": "the norm after the last layer: a function of the stream",
    "mlm_head.proj.weight": "[D, D]; only where there is such a head",
    "output_weight": "what gives logits [V, D]",
}
