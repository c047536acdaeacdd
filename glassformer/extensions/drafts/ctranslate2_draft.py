"""CTranslate2 draft for speculative decoding: support check, conversion of the checkpoint to int8, greedy outputs.

It needs the package (the extra `fast`), which is imported when a draft is made. The converted model is written to a
temporary folder, read, and the folder is removed. Pieces are named by their ids, so any vocabulary will do.

Source: https://github.com/OpenNMT/CTranslate2; the layout of a converted model is that of its package `specs`.

Shapes: V vocabulary, D d_model.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from transformer.model.attention import MultiHeadAttention
from transformer.model.config import ModelConfig
from transformer.model.layers import DecoderLayer, EncoderLayer
from transformer.model.taps import NO_TAP
from transformer.model.transformer import Decoder, Encoder, Transformer
from transformer.runs.drafting import Ids, Pause
from transformer.runs.query import Greedy, Runnable
from transformer.runs.reading import EncodedBatch

Compute = Literal["int8", "float32"]
_ACTIVATIONS = {
    "relu": "RELU", "gelu": "GELU", "gelu_tanh": "GELUTanh", "silu": "SWISH", "quick_gelu": "GELUSigmoid",
}  # fmt: skip


def why_not(checkpoint: Runnable) -> str | None:
    """Why a checkpoint has no such draft, for a log: the missing package or unsupported settings; None if it has."""
    try:
        import ctranslate2  # noqa: F401
    except ImportError as error:
        return f"{error}; pip install 'glassformer[fast]' brings it"
    lacking = _lacking(checkpoint.config)
    return ", ".join(lacking) if lacking else None


def _lacking(c: ModelConfig) -> list[str]:
    """The settings that are in the way."""
    both, turn = bool(c.n_encoder_layers and c.n_decoder_layers), c.rotary
    found: dict[str, object] = {
        "n_decoder_layers": not c.n_decoder_layers,
        "norm_kind": c.norm_kind not in ("layer", "rms") or (c.parallel_residual and c.norm_kind == "rms"),
        "activation": c.activation not in _ACTIVATIONS,
        "residual": not c.residual,
        "norm": both and c.norm == "both",
        # Without an encoder, relative positions are wrong after a prompt.
        "positions": c.positions == "alibi" if both else c.positions == "relative",
        "n_token_types": c.n_token_types and c.placing.adds in ("turn", "bias"),
        "qk_norm": both and c.qk_norm,
        "windows": c.windows,
        "score_cap": c.score_cap is not None,
        "unplaced_layers": c.unplaced_layers,
        "rotary": turn and (turn.scaling != "none" or turn.magnitude not in (None, 1)),
        "repetition_penalty": c.repetition_penalty != 1.0,
        "first_banned_ids": c.first_banned_ids,
        "min_length": c.min_length,
        "min_new": c.min_new,
        "no_repeat_ngram": not both and c.no_repeat_ngram,  # it would look at the prompt, too
    }
    return [name for name, so in found.items() if so]


def made(checkpoint: Runnable, *, compute: Compute = "int8") -> CTranslate2Draft:
    """The draft of a checkpoint; a ValueError with `why_not`, an OSError if no temporary file can be written.

    For 8 million parameters it takes 0.2 s, and meanwhile their size in 32 bits once more.
    """
    if why := why_not(checkpoint):
        raise ValueError(why)
    return CTranslate2Draft(checkpoint.model, compute)


def suits(reading: EncodedBatch) -> bool:
    """Whether a reading is decoded greedily and has no changes."""
    plain = all(isinstance(one.decoding, Greedy) and not one.interventions for one in reading.queries)
    return plain and reading.tap is NO_TAP


class CTranslate2Draft:
    """Writes greedily with CTranslate2, in as many threads as torch has when it is made; thread-safe."""

    name = "ctranslate2"

    def __init__(self, model: Transformer, compute: Compute = "int8") -> None:
        import ctranslate2

        config = model.config
        with TemporaryDirectory(prefix="glassformer-") as folder:
            _save(model, folder, compute)
            engine = ctranslate2.Translator if config.n_encoder_layers else ctranslate2.Generator
            n_threads = torch.get_num_threads()
            self._engine = engine(folder, compute_type=compute, inter_threads=1, intra_threads=n_threads)
        self._config, self._process = config, os.getpid()
        banned = [[i] for i in config.never_written] + [list(run) for run in config.banned_sequences]
        self._options = {
            "beam_size": 1,
            "end_token": list(config.end_ids),
            "return_end_token": True,
            "suppress_sequences": [_named(run) for run in banned] or None,
            "no_repeat_ngram_size": config.no_repeat_ngram,
        }

    def suits(self, reading: EncodedBatch) -> bool:
        """Whether it can write for a reading, in this process: a forked one has none of its threads and would hang."""
        return suits(reading) and os.getpid() == self._process

    def write(self, reading: EncodedBatch, rows: Sequence[int], begun: Sequence[Ids], pause: Pause) -> list[Ids]:
        """See `Draft.write`. Decodes without a pause, all rows with room for as many pieces at once."""
        outputs: dict[int, Ids] = {}
        groups: dict[tuple[int, int], list[int]] = defaultdict(list)
        for at, (row, ids) in enumerate(zip(rows, begun, strict=True)):
            source = reading.sources[row]
            most = min(reading.queries[row].max_new, source.room)
            outputs[at] = (*ids, *source.forced[len(ids) :])[:most]
            if len(outputs[at]) < most and not (outputs[at] and outputs[at][-1] in self._config.end_ids):
                groups[most, 0 if self._config.n_encoder_layers else len(outputs[at])].append(at)
        for (most, _), group in groups.items():
            pause()
            sources = [reading.sources[rows[at]].ids for at in group]
            written = self._decode(sources, [outputs[at] for at in group], most)
            outputs |= {at: self._closed(ids, most) for at, ids in zip(group, written, strict=True)}
        return [outputs[at] for at in range(len(rows))]

    def _decode(self, sources: Sequence[Ids], begun: Sequence[Ids], most: int) -> list[Ids]:
        """Outputs of at most so many pieces, what they begin with included."""
        if self._config.n_encoder_layers:
            prefixes = [_named(ids) for ids in begun]
            found = self._engine.translate_batch(
                [_named(ids) for ids in sources], prefixes, max_input_length=0, min_decoding_length=0,
                max_decoding_length=most, **self._options,
            )  # fmt: skip
            return [tuple(map(int, one.hypotheses[0])) for one in found]
        read = [_named((*prompt, *ids)) for prompt, ids in zip(sources, begun, strict=True)]
        found = self._engine.generate_batch(
            read, include_prompt_in_result=False, max_length=most - len(begun[0]), **self._options
        )
        return [(*ids, *one.sequences_ids[0]) for ids, one in zip(begun, found, strict=True)]

    def _closed(self, ids: Ids, most: int) -> Ids:
        """An output that the length limit cuts, with the end that the config forces."""
        end = self._config.forced_end_id
        return (*ids[: most - 1], end) if end is not None and len(ids) >= most else ids[:most]


def _named(ids: Sequence[int]) -> list[str]:
    return [str(i) for i in ids]


def _save(model: Transformer, folder: str, compute: Compute) -> None:
    """Write a model as CTranslate2 reads it."""
    from ctranslate2.specs import TransformerDecoderModelSpec, TransformerSpec

    c = model.config
    decoder = _decoder(model)
    if c.n_encoder_layers:
        spec = TransformerSpec(_encoder(model), decoder)
        spec.register_source_vocabulary(_named(range(c.src_vocab_size)))
        spec.register_target_vocabulary(_named(range(c.tgt_vocab_size)))
        spec.config.decoder_start_token = str(c.decoder_start_id)
    else:
        spec = TransformerDecoderModelSpec(decoder)
        spec.register_vocabulary(_named(range(c.tgt_vocab_size)))
    spec.config.unk_token = str(c.eos_id if c.unk_id is None else c.unk_id)
    spec.config.bos_token, spec.config.eos_token = str(c.decoder_start_id), str(c.eos_id)
    spec.config.layer_norm_epsilon = c.norm_eps
    spec.validate()
    spec.optimize(quantization=compute)
    spec.save(folder)


def _encoder(model: Transformer) -> Any:
    from ctranslate2.specs import TransformerEncoderSpec

    c = model.config.of("encoder")
    spec = TransformerEncoderSpec(c.n_encoder_layers, c.n_heads, **_features(c))
    spec.embeddings[0].weight = _array(model.src_table)
    return _fill(spec, model.encoder, c)


def _decoder(model: Transformer) -> Any:
    from ctranslate2.specs import TransformerDecoderSpec

    c = model.config.of("decoder")
    spec = TransformerDecoderSpec(
        c.n_decoder_layers, c.n_heads, with_encoder_attention=c.n_encoder_layers > 0, alibi=c.positions == "alibi",
        parallel_residual=c.parallel_residual, pre_post_layer_norm=c.norm == "both", **_features(c),
    )  # fmt: skip
    spec.embeddings.weight = _array(model.target_table)
    spec.projection.weight = _array(model.output_weight * c.output_scale)  # a cap would change no choice
    if model.output_bias is not None:
        spec.projection.bias = _array(model.output_bias)
    return _fill(spec, model.decoder, c)


def _features(c: ModelConfig) -> dict[str, Any]:
    """What both stacks can have. A final norm is possible after post-norm, too, but not in these arguments."""
    from ctranslate2.specs import Activation

    rotary = c.rotary and {"rotary_dim": c.rotary.width(c.d_head), "rotary_base": c.rotary.base}
    return {
        "pre_norm": True, "no_final_norm": not c.final_norm, "activation": Activation[_ACTIVATIONS[c.activation]],
        "layernorm_embedding": c.embedding_norm, "ffn_glu": c.gated, "rms_norm": c.norm_kind == "rms",
        "relative_attention_bias": c.positions == "relative", "qk_norm": c.qk_norm,
        "num_heads_kv": None if c.n_kv_heads == c.n_heads else c.n_kv_heads,
        "head_dim": None if c.d_head * c.n_heads == c.d_model else c.d_head,
        "rotary_interleave": False, **(rotary or {}),
    }  # fmt: skip


def _fill(spec: Any, stack: Encoder | Decoder, c: ModelConfig) -> Any:
    """Give a stack its positions, norms and layers."""
    spec.pre_norm, spec.scale_embeddings = c.norm != "post", c.scale_embedding
    embedding = stack.embedding
    if hasattr(spec, "position_encodings"):  # without a table it would add sinusoids
        table = torch.zeros(c.max_len, c.d_model) if embedding.positions is None else embedding.positions.table
        types = 0.0 if embedding.types is None else embedding.types.table[0]
        spec.position_encodings.encodings = _array(table + types)
    if embedding.norm is not None:
        _norm(spec.layernorm_embedding, embedding.norm)
    if c.final_norm:
        _norm(spec.layer_norm, stack.final_norm)
    for place, layer in zip(spec.layer, stack.layers, strict=True):
        assert isinstance(layer, EncoderLayer | DecoderLayer)
        _layer(place, layer, c)
        if c.positions == "relative":
            place.self_attention.relative_attention_bias = _array(stack.order.table)
            place.self_attention.relative_attention_max_distance = np.int32(c.relative_distance)
    return spec


def _layer(spec: Any, layer: EncoderLayer | DecoderLayer, c: ModelConfig) -> None:
    attention, feed = layer.self_attn_residual, layer.ffn_residual
    if c.norm == "both":
        _norm(spec.input_layer_norm, attention.norm)
        _norm(spec.post_attention_layer_norm, attention.output_norm)
        _norm(spec.pre_feedforward_layer_norm, feed.norm)
        _norm(spec.post_feedforward_layer_norm, feed.output_norm)
    elif c.parallel_residual:
        _norm(spec.input_layer_norm, attention.norm)
        _norm(spec.post_attention_layer_norm, feed.norm)
    else:
        _norm(spec.self_attention.layer_norm, attention.norm)
        _norm(spec.ffn.layer_norm, feed.norm)
    own = layer.self_attn
    _attention(spec.self_attention, own, [[own.q_proj, own.k_proj, own.v_proj]], c)
    if isinstance(layer, DecoderLayer) and layer.reads_memory:
        cross = layer.cross_attn
        _norm(spec.attention.layer_norm, layer.cross_attn_residual.norm)
        _attention(spec.attention, cross, [[cross.q_proj], [cross.k_proj, cross.v_proj]], c)
    if c.gated:
        _linear(spec.ffn.linear_0, [layer.ffn.gate_proj])
        _linear(spec.ffn.linear_0_noact, [layer.ffn.up_proj])
    else:
        _linear(spec.ffn.linear_0, [layer.ffn.up_proj])
    _linear(spec.ffn.linear_1, [layer.ffn.down_proj])


def _attention(spec: Any, module: MultiHeadAttention, maps: Sequence[Sequence[nn.Linear]], c: ModelConfig) -> None:
    for place, joined in zip(spec.linear, [*maps, [module.out_proj]], strict=True):
        _linear(place, joined)
    if c.qk_norm:
        _norm(spec.q_norm, module.q_norm)
        _norm(spec.k_norm, module.k_norm)
    if c.score_scale is not None:
        spec.queries_scale = float(c.score_scale)


def _linear(spec: Any, maps: Sequence[nn.Linear]) -> None:
    """Linear maps below each other, as one."""
    spec.weight = _array(torch.cat(tuple(one.weight for one in maps)))
    if maps[0].bias is not None:
        spec.bias = _array(torch.cat(tuple(one.bias for one in maps)))


def _norm(spec: Any, norm: Any) -> None:
    spec.gamma = _array(norm.weight)
    if hasattr(spec, "beta"):
        bias = getattr(norm, "bias", None)
        spec.beta = np.zeros_like(spec.gamma) if bias is None else _array(bias)


def _array(values: Tensor) -> np.ndarray:
    """A copy in 32 bits: CTranslate2 rounds in place what it is given."""
    return values.detach().float().numpy().copy()
