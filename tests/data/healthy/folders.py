"""Folders of transformers: marian, gpt2, llama and bert."""

import io
import json
from collections.abc import Callable

import sentencepiece
import tokenizers
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MarianConfig,
    MarianMTModel,
)

from tests.data.healthy import tasks
from tests.data.healthy.training import HEADS, HERE, HIDDEN, WIDTH, padded, write

SIDES = [
    (*tasks.ARTICLES, *tasks.NOUNS, *tasks.VERBS, *tasks.ADJECTIVES),
    (*tasks.ARTICLES.values(), *(f"{noun}{end}" for noun in tasks.NOUNS.values() for end in ("o", "on")),
     *tasks.VERBS.values(), *tasks.ADJECTIVES.values()),
]  # fmt: skip
MARIAN_IDS = {f"▁{word}": n for n, word in enumerate((*SIDES[0], *SIDES[1]), start=2)} | {"</s>": 0, "<unk>": 1}
MARIAN_IDS["<pad>"] = len(MARIAN_IDS)
GPT2_IDS = {piece: n for n, piece in enumerate(("<|endoftext|>", "=", *tasks.LETTERS))}
BERT_IDS = {
    piece: n for n, piece in enumerate(("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *SIDES[0], *SIDES[1]))
}


def pieces_of_words(words: tuple[str, ...]) -> bytes:
    """A SentencePiece model whose pieces are these words."""
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([" ".join(words)]), model_writer=made, model_type="word", vocab_size=len(words) + 3,
        normalization_rule_name="identity", minloglevel=2,
    )  # fmt: skip
    return made.getvalue()


def as_json(record: object) -> bytes:
    """JSON as these folders have it."""
    return json.dumps(record, ensure_ascii=False).encode()


def marian() -> nn.Module:
    """An encoder and a decoder that share one table."""
    sides = {f"{side}.spm": pieces_of_words(words) for side, words in zip(("source", "target"), SIDES, strict=True)}
    write("marian", {**sides, "vocab.json": as_json(MARIAN_IDS)})
    pad = MARIAN_IDS["<pad>"]
    sizes = {f"{stack}_layers": 2 for stack in ("encoder", "decoder")}
    sizes |= {f"{stack}_attention_heads": HEADS for stack in ("encoder", "decoder")}
    sizes |= {f"{stack}_ffn_dim": HIDDEN for stack in ("encoder", "decoder")}
    config = MarianConfig(
        vocab_size=len(MARIAN_IDS), decoder_vocab_size=len(MARIAN_IDS), d_model=WIDTH, max_position_embeddings=16,
        scale_embedding=True, activation_function="swish", dropout=0.0, init_std=WIDTH**-0.5,
        pad_token_id=pad, eos_token_id=0, decoder_start_token_id=pad, forced_eos_token_id=None, **sizes,
    )  # fmt: skip
    return MarianMTModel(config)


def marian_loss(model: nn.Module, pairs: list[tasks.Pair]) -> Tensor:
    """Teacher forcing."""
    pad = MARIAN_IDS["<pad>"]
    src, tgt = (
        padded([[*(MARIAN_IDS[f"▁{word}"] for word in pair[side].split()), 0] for pair in pairs], pad)
        for side in (0, 1)
    )
    return model(input_ids=src, attention_mask=src != pad, labels=tgt.masked_fill(tgt == pad, -100)).loss


def one_by_one(ids: dict[str, int]) -> bytes:
    """A tokenizer.json that splits a text into its characters."""
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(ids, unk_token="<|endoftext|>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex("."), "isolated")
    made.decoder = tokenizers.decoders.Fuse()
    made.add_special_tokens(["<|endoftext|>"])
    return made.to_str().encode()


def gpt2() -> nn.Module:
    """A decoder alone."""
    write("gpt2", {"tokenizer.json": one_by_one(GPT2_IDS)})
    config = GPT2Config(
        vocab_size=len(GPT2_IDS), n_embd=48, n_layer=2, n_head=HEADS, n_inner=96, n_positions=2 * tasks.LONGEST + 1,
        bos_token_id=0, eos_token_id=0, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, initializer_range=0.1,
    )  # fmt: skip
    return GPT2LMHeadModel(config)


def llama() -> nn.Module:
    """A decoder alone with rotary positions, heads that share keys and values, and a gate in the feed-forward."""
    write("llama", {"tokenizer.json": one_by_one(GPT2_IDS)})
    config = LlamaConfig(
        vocab_size=len(GPT2_IDS), hidden_size=48, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=HEADS, num_key_value_heads=2, max_position_embeddings=32, bos_token_id=0, eos_token_id=0,
        tie_word_embeddings=False, initializer_range=0.1,
    )  # fmt: skip
    return LlamaForCausalLM(config)


def next_piece(model: nn.Module, pairs: list[tasks.Pair]) -> Tensor:
    """Of every next piece."""
    rows = [[*(GPT2_IDS[piece] for piece in source + target), 0] for source, target in pairs]
    ids, labels = padded(rows, 0), padded(rows, -100)
    logits = model(input_ids=ids[:, :-1]).logits
    return F.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)


def bert() -> nn.Module:
    """An encoder alone, with its head."""
    write("bert", {"vocab.txt": "".join(f"{piece}\n" for piece in BERT_IDS).encode()})
    config = BertConfig(
        vocab_size=len(BERT_IDS), hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=HEADS,
        intermediate_size=HIDDEN, max_position_embeddings=17, type_vocab_size=1, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, initializer_range=0.1,
    )  # fmt: skip
    return BertForMaskedLM(config)


def bert_loss(model: nn.Module, pairs: list[tasks.Pair]) -> Tensor:
    """Of a sixth of the pieces: hidden, replaced by any, or left as they are, as BERT was trained."""
    ids = padded([[2, *(BERT_IDS[word] for word in text.split()), 3] for text, _ in pairs], 0)
    asked = (torch.rand(ids.shape) < 1 / 6) & (ids > BERT_IDS["[MASK]"])
    asked[:, 1] |= ~asked.any()
    chance = torch.rand(ids.shape)
    seen = torch.where(asked & (chance < 0.8), BERT_IDS["[MASK]"], ids)
    seen = torch.where(asked & (chance > 0.9), torch.randint_like(ids, 5, len(BERT_IDS)), seen)
    return model(input_ids=seen, attention_mask=ids != 0, labels=ids.masked_fill(~asked, -100)).loss


def folder_of(name: str) -> Callable[[nn.Module], None]:
    """Write what transformers writes, in 16 bits."""

    def save(model: nn.Module) -> None:
        model.half().save_pretrained(HERE / name)

    return save
