"""One model in three programs with equal parameters: Hugging Face's transformers, CTranslate2 and ours.

The shipped checkpoint zh-en is written into a model of Pegasus' kind (norms before, a table of positions). The others
have random parameters and go the other way, through our importer of Hugging Face's folders. They have no tokenizer,
so their sentences are ids.
"""

import math
import random
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.harness import CHECKPOINTS
from glassformer.extensions.huggingface.folder import import_folder
from transformer.checkpoint.load import Checkpoint, load
from transformer.checkpoint.save import save
from transformer.model.config import ModelConfig

SEED = 1
SOURCE_TOKENS, TARGET_TOKENS = 20, 30  # of random models
LONGEST = 128  # most target tokens of the others
TRAINED, RANDOM = "zh-en", ("small", "opus-mt", "gpt2")
NAMES = (TRAINED, *RANDOM)
SENTENCES = (
    "谢谢你的帮助。", "我的猫在桌子下面睡觉。", "他每天早上七点起床。", "你昨天晚上为什么没有给我打电话？",
    "如果明天下雨，我们就待在家里看书。", "她说她从来没有见过这么漂亮的花园。",
    "这家饭店的菜很好吃，但是价钱比别的地方贵得多。",
    "老师问我们谁知道答案，可是没有一个学生敢说话，因为这个问题太难了。",
)  # fmt: skip


def peer_of(name: str) -> Any:
    """Hugging Face's model of a name; random parameters are the same ones each time."""
    if name == TRAINED:
        return pegasus(load(CHECKPOINTS / name))
    torch.manual_seed(SEED)
    return _gpt2() if name == "gpt2" else _marian(name)


def texts(name: str, least: int = 1) -> list[str]:
    """At least so many sentences for a model: real ones of several lengths, or ids."""
    if name == TRAINED:
        return list(SENTENCES) * math.ceil(least / len(SENTENCES))
    draw = random.Random(SEED)
    rows = [[draw.randrange(10, 8000) for _ in range(SOURCE_TOKENS)] for _ in range(max(least, 2))]
    return [" ".join(map(str, row)) for row in rows]


def _marian(name: str) -> Any:
    """A random model of Marian's kind: norms after, a table of positions."""
    from transformers import MarianConfig, MarianMTModel

    size, width, heads, layers = (8000, 256, 4, 3) if name == "small" else (58_101, 512, 8, 6)
    config = MarianConfig(
        vocab_size=size, d_model=width, encoder_layers=layers, decoder_layers=layers, encoder_attention_heads=heads,
        decoder_attention_heads=heads, encoder_ffn_dim=4 * width, decoder_ffn_dim=4 * width,
        max_position_embeddings=LONGEST, activation_function="relu" if name == "small" else "swish",
        scale_embedding=True, share_encoder_decoder_embeddings=True,
        tie_word_embeddings=False,  # a tied random model writes one and the same piece again and again
        init_std=0.2,  # larger than usual: the best piece of a random model is then clear of the second
        pad_token_id=0, eos_token_id=3, bos_token_id=2, decoder_start_token_id=0, forced_eos_token_id=None,
    )  # fmt: skip
    model = MarianMTModel(config).eval()
    model.model.encoder.embed_tokens = model.model.decoder.embed_tokens = model.model.shared  # as its files have it
    model.final_logits_bias.zero_()
    for layer in model.model.decoder.layers:
        _soften(layer.self_attn.out_proj, layer.encoder_attn.out_proj, layer.fc2)
    return _endless(_sure(model))


def _gpt2() -> Any:
    """A random decoder alone of GPT-2's size and kind: norms before, learned positions."""
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(tie_word_embeddings=False, initializer_range=0.2)).eval()
    model.transformer.wte.weight.data.mul_(model.config.n_embd**0.5)
    for block in model.transformer.h:
        _soften(block.attn.c_proj, block.mlp.c_proj)
    return _endless(_sure(model))


@torch.no_grad()
def _soften(*last: Any) -> None:
    """Let sub-layers add little: else nearly the same is added after every token, and one piece follows itself."""
    for linear in last:
        linear.weight.mul_(0.002)


@torch.no_grad()
def _sure(model: Any) -> Any:
    """The model, as sure as a trained one which piece comes next: each has one that follows it, drawn at random."""
    table, output = model.get_input_embeddings().weight, model.lm_head.weight
    output.add_(table[torch.randperm(len(output))], alpha=1.0 / float(table.std()))
    output.mul_(10 / table.size(1))  # nats apart as in a trained model, too
    return model


def _endless(model: Any) -> Any:
    """The model, but `generate` does not stop at an end piece: every program writes all tokens."""
    model.generation_config.eos_token_id = None
    model.generation_config.pad_token_id = 0
    return model


def pegasus(checkpoint: Checkpoint) -> Any:
    """The parameters of a checkpoint with an encoder, a decoder and norms before, in a model of Hugging Face's."""
    from transformers import PegasusConfig, PegasusForConditionalGeneration

    c = checkpoint.config
    config = PegasusConfig(
        vocab_size=c.tgt_vocab_size, d_model=c.d_model, encoder_layers=c.n_encoder_layers,
        decoder_layers=c.n_decoder_layers, encoder_attention_heads=c.n_heads, decoder_attention_heads=c.n_heads,
        encoder_ffn_dim=c.d_ff, decoder_ffn_dim=c.d_ff, max_position_embeddings=c.max_len,
        activation_function=c.activation, scale_embedding=c.scale_embedding, tie_word_embeddings=False,
        pad_token_id=c.pad_id, eos_token_id=c.eos_id, bos_token_id=c.bos_id, decoder_start_token_id=c.decoder_start_id,
        forced_eos_token_id=None,
    )  # fmt: skip
    model = PegasusForConditionalGeneration(config).eval().requires_grad_(False)
    model.model.encoder.embed_tokens = nn.Embedding(c.src_vocab_size, c.d_model).requires_grad_(False)
    model.model.decoder.embed_tokens = nn.Embedding(c.tgt_vocab_size, c.d_model).requires_grad_(False)
    state = _their_names(checkpoint)
    left = model.load_state_dict(state, strict=False)
    if set(left.missing_keys) - {"model.shared.weight"} or left.unexpected_keys:
        raise RuntimeError(f"parameters without a partner: {left}")
    return model


def written(name: str, folder: Path) -> Path:
    """Write a model of Hugging Face's into a folder, as everybody publishes them."""
    theirs = folder / f"{name}-theirs"
    if not theirs.exists():
        peer_of(name).save_pretrained(theirs)
        (theirs / "generation_config.json").unlink()  # that it never ends is no rule of ours
    return theirs


def stored(name: str, folder: Path) -> Path:
    """Write a model of Hugging Face's into a folder, import it, and return the folder of our checkpoint."""
    parts = import_folder(written(name, folder)).parts
    if parts is None:
        raise RuntimeError("our importer asks for more than the folder says")
    save(parts, folder / f"{name}-ours", dtype=torch.float32)
    return folder / f"{name}-ours"


def ctranslate2(peer: Any, config: ModelConfig, *, threads: int) -> Any:
    """CTranslate2's translator, in float32, with the parameters of a peer; its pieces are ids."""
    import ctranslate2
    from ctranslate2.converters.transformers import BartLoader

    peer.config.normalize_before, peer.config.normalize_embedding = config.norm == "pre", False
    spec = BartLoader().get_model_spec(peer)
    spec.register_source_vocabulary(list(map(str, range(config.src_vocab_size))))
    spec.register_target_vocabulary(list(map(str, range(config.tgt_vocab_size))))
    spec.config.decoder_start_token = str(config.decoder_start_id)
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = "2", str(config.eos_id), "1"
    spec.config.layer_norm_epsilon = config.norm_eps
    spec.validate()
    spec.optimize(quantization=None)
    with tempfile.TemporaryDirectory() as folder:
        spec.save(folder)
        return ctranslate2.Translator(folder, compute_type="float32", inter_threads=1, intra_threads=threads)


_PLACES = {
    "self_attn.": "self_attn.",
    "cross_attn.": "encoder_attn.",
    "self_attn_residual.norm.": "self_attn_layer_norm.",
    "cross_attn_residual.norm.": "encoder_attn_layer_norm.",
    "ffn_residual.norm.": "final_layer_norm.",
    "ffn.up_proj.": "fc1.",
    "ffn.down_proj.": "fc2.",
}


def _their_names(checkpoint: Checkpoint) -> dict[str, Tensor]:
    """The parameters of a checkpoint by the names of Hugging Face's models of BART's kind."""
    model = checkpoint.model
    named = {
        "model.encoder.embed_tokens.weight": model.src_table,
        "model.decoder.embed_tokens.weight": model.target_table,
        "lm_head.weight": model.output_weight,
        "final_logits_bias": torch.zeros(1, checkpoint.config.tgt_vocab_size),
    }
    for stack in ("encoder", "decoder"):
        named[f"model.{stack}.embed_positions.weight"] = getattr(model, stack).embedding.positions.table
        for key, value in getattr(model, stack).state_dict().items():
            rename = next((name for name in _PLACES if f".{name}" in key), None)
            theirs = key.replace(rename, _PLACES[rename]) if rename else key.replace("final_norm.", "layer_norm.")
            named[f"model.{stack}.{theirs}"] = value
    return {name: value.contiguous() for name, value in named.items()}
