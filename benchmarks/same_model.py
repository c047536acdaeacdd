"""One small random model in three programs: Hugging Face Marian, CTranslate2 and ours, with equal parameters.

The model is of Marian's kind: post-norm, ReLU, a table of positions.
"""

import tempfile
from typing import Any

import torch
from torch import Tensor

from tests.transformer.tiny import laid_out
from transformer.checkpoint.card import Card
from transformer.checkpoint.load import Checkpoint
from transformer.model.config import ModelConfig
from transformer.model.transformer import Transformer
from transformer.text.tokenizer import Tokenizer
from transformer.training.vocabulary import learn_vocabulary

VOCABULARY, WIDTH, HEADS, LAYERS, INNER, LONGEST = 8000, 256, 4, 3, 1024, 128
SEED = 1


def marian() -> Any:
    """Hugging Face's model, random parameters, the same ones each time."""
    from transformers import MarianConfig, MarianMTModel

    torch.manual_seed(SEED)
    config = MarianConfig(
        vocab_size=VOCABULARY,
        d_model=WIDTH,
        encoder_layers=LAYERS,
        decoder_layers=LAYERS,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=INNER,
        decoder_ffn_dim=INNER,
        max_position_embeddings=LONGEST,
        activation_function="relu",
        scale_embedding=True,
        share_encoder_decoder_embeddings=True,
        tie_word_embeddings=False,  # a tied random model writes one and the same piece again and again
        init_std=0.2,  # larger than usual: the best piece of a random model is then clear of the second
        pad_token_id=0,
        eos_token_id=3,
        bos_token_id=2,
        decoder_start_token_id=0,
        forced_eos_token_id=None,
    )
    model = MarianMTModel(config).eval()
    model.final_logits_bias.zero_()
    model.generation_config.eos_token_id = None  # so that every program writes all 30 tokens
    return model


def ours(peer: Any) -> Checkpoint:
    """Our model with the parameters of `marian()`, as a checkpoint with a vocabulary of made-up words."""
    config = ModelConfig(
        n_encoder_layers=LAYERS,
        n_decoder_layers=LAYERS,
        d_model=WIDTH,
        n_heads=HEADS,
        d_ff=INNER,
        src_vocab_size=VOCABULARY,
        tgt_vocab_size=VOCABULARY,
        norm="post",
        final_norm=False,
        positions="learned",
        tie_output=False,
        max_len=LONGEST,
        decoder_start_id=0,
    )
    model = Transformer(config)
    model.load_state_dict(_our_names(peer.state_dict()))
    tokenizer = Tokenizer(learn_vocabulary(_made_up_words(), size=VOCABULARY))
    return Checkpoint(
        name="random",
        folder=None,  # type: ignore[arg-type]  # it was never on a disk
        config=config,
        model=laid_out(model),
        src_tokenizer=tokenizer,
        tgt_tokenizer=tokenizer,
        card=Card(),
        content_hash="0" * 64,
    )


def ctranslate2(peer: Any, *, pieces: list[str], threads: int) -> Any:
    """CTranslate2's translator with the parameters of `marian()`, float32."""
    import ctranslate2
    from ctranslate2.converters.transformers import BartLoader

    peer.config.normalize_before = False
    peer.config.normalize_embedding = False
    spec = BartLoader().get_model_spec(peer)
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.config.decoder_start_token = pieces[0]
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = pieces[2], pieces[3], pieces[1]
    spec.validate()
    spec.optimize(quantization=None)
    with tempfile.TemporaryDirectory() as folder:
        spec.save(folder)
        return ctranslate2.Translator(folder, compute_type="float32", inter_threads=1, intra_threads=threads)


_PLACES = {
    "self_attn.": "self_attn.",
    "encoder_attn.": "cross_attn.",
    "self_attn_layer_norm.": "self_attn_residual.norm.",
    "encoder_attn_layer_norm.": "cross_attn_residual.norm.",
    "final_layer_norm.": "ffn_residual.norm.",
    "fc1.": "ffn.up_proj.",
    "fc2.": "ffn.down_proj.",
}


def _our_names(state: dict[str, Tensor]) -> dict[str, Tensor]:
    named = {
        "src_table": state["model.encoder.embed_tokens.weight"],
        "tgt_table": state["model.decoder.embed_tokens.weight"],
        "output_table": state["lm_head.weight"],
    }
    for stack in ("encoder", "decoder"):
        named[f"{stack}.embedding.positions.table"] = state[f"model.{stack}.embed_positions.weight"]
        for key, value in state.items():
            head, layers, rest = key.partition(f"model.{stack}.layers.")
            if head or not layers:
                continue
            layer, _, place = rest.partition(".")
            theirs = next(p for p in _PLACES if place.startswith(p))
            named[f"{stack}.layers.{layer}.{_PLACES[theirs]}{place.removeprefix(theirs)}"] = value
    return named


def _made_up_words() -> list[str]:
    """Enough different words, each several times, for a vocabulary of 8,000 pieces."""
    vowels, consonants = "aeiou", "bdfgklmnprstvz"
    syllables = [c + v for c in consonants for v in vowels]
    words = [a + b + c for a in syllables for b in syllables for c in syllables[::7]]
    return [" ".join(words[i : i + 8]) for i in range(0, len(words), 4)]
