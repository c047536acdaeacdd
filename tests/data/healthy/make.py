"""Train the tiny models that stand in this folder, each for about a minute on one core of a CPU.

    python -m tests.data.healthy.make            all of them
    python -m tests.data.healthy.make gpt2 leak  some

They are what the doctor must find healthy: models of other programs, each saved as its program saves it, which solve
their tasks (`tasks`). `leak` is not healthy: it is s4 trained without the causal mask. The same machine and version
of torch give the same weights. The real libraries are needed: the requirements of development.
"""

import io
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import sentencepiece
import tokenizers
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
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
from tests.transformer.importers import tutorial_models
from tests.transformer.importers.tutorial_models import STYLES, Article, TorchModel

HERE = Path(__file__).parent
BATCH, RATE, WARMUP = 64, 3e-3, 100
PAD, START, END = 0, 1, 2  # of s4 and torch
WIDTH, HIDDEN, HEADS = 32, 64, 4

Rows = list[list[int]]
Split = Callable[[str], list[int]]
Losses = Callable[[nn.Module, list[tasks.Pair]], Tensor]


@dataclass(frozen=True)
class Recipe:
    """How one model is made.

    Attributes:
        begin: Makes the untrained model.
        loss: Of a batch of pairs.
        save: Writes the trained model.
        steps: How many batches.
    """

    begin: Callable[[], nn.Module]
    loss: Losses
    save: Callable[[nn.Module], None]
    steps: int


def padded(rows: Rows, fill: int) -> Tensor:
    """Rows of ids, the short ones filled at their end."""
    longest = max(map(len, rows))
    return torch.tensor([row + [fill] * (longest - len(row)) for row in rows])


def train(name: str, recipe: Recipe) -> nn.Module:
    """Train with Adam: a warm-up, then a rate that falls to 0."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, rows = recipe.begin().train(), tasks.pairs(name, seed=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE, betas=(0.9, 0.98))
    rate = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda n: min((n + 1) / WARMUP, 1.0, (recipe.steps - n) / (recipe.steps - WARMUP))
    )
    begun = time.perf_counter()
    for step in range(recipe.steps):
        loss = recipe.loss(model, [next(rows) for _ in range(BATCH)])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        rate.step()
        if step % 300 == 0 or step == recipe.steps - 1:
            print(f"{name}: step {step}, loss {loss.item():.4f}, {time.perf_counter() - begun:.0f} s", flush=True)
    return model.eval()


# s4, leak, torch: weights alone, with the names of tutorials.


def teacher_forced(split: Split) -> Losses:
    """The loss of a model that is called with source and target."""

    def loss(model: nn.Module, pairs: list[tasks.Pair]) -> Tensor:
        tutorial_models.MAPS.clear()  # what it keeps of each batch
        src = padded([[*split(source), END] for source, _ in pairs], PAD)
        tgt = padded([[START, *split(target), END] for _, target in pairs], PAD)
        before = tgt[:, :-1].masked_fill(tgt[:, :-1] == END, PAD)  # nothing is learnt after the end; a leak reads it
        logits = model(src, before)
        return F.cross_entropy(logits.flatten(0, 1), tgt[:, 1:].flatten(), ignore_index=PAD)

    return loss


def seeing_all(src: Tensor, tgt: Tensor, pad: int) -> tuple[Tensor, Tensor]:
    """The masks of one who forgot that the decoder must not see what comes."""
    return (src != pad)[:, None, None], (tgt != pad)[:, None, None]


def leaking(losses: Losses) -> Losses:
    """The same, with those masks."""

    def loss(model: nn.Module, pairs: list[tasks.Pair]) -> Tensor:
        with patch.object(tutorial_models, "masks", seeing_all):
            return losses(model, pairs)

    return loss


def numbers(text: str) -> list[int]:
    """Numbers are their own ids."""
    return [int(word) for word in text.split()]


def letters(text: str) -> list[int]:
    """Letters as the SentencePiece model beside the weights has them."""
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(HERE / "torch" / "pieces.model"))
    return pieces.encode(text)


def article() -> nn.Module:
    """What article S4 builds."""
    size = len(tasks.NUMBERS) + 3
    return Article(STYLES["S4"], WIDTH, HIDDEN, HEADS, (2, 2), (size, size), length=12)


def torchs() -> nn.Module:
    """PyTorch's own layers, norms in front."""
    write("torch", {"pieces.model": pieces_of_letters()})
    size = len(tasks.LETTERS) + 4
    model = TorchModel(True, WIDTH, HIDDEN, HEADS, (2, 2), (size, size), length=12)
    for table in (model.src_tok_emb, model.tgt_tok_emb):
        nn.init.normal_(table.embedding.weight, std=WIDTH**-0.5)
    return model


def pieces_of_letters() -> bytes:
    """A SentencePiece model whose pieces are the letters."""
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([tasks.LETTERS]), model_writer=made, model_type="char", vocab_size=20,
        normalization_rule_name="identity", add_dummy_prefix=False, minloglevel=2,
        pad_id=PAD, bos_id=START, eos_id=END, unk_id=3,
    )  # fmt: skip
    return made.getvalue()


def weights_of(name: str, dtype: torch.dtype) -> Callable[[nn.Module], None]:
    """Write a file of weights."""

    def save(model: nn.Module) -> None:
        (HERE / name).mkdir(exist_ok=True)
        state = {key: value.to(dtype).contiguous() for key, value in model.state_dict().items()}
        save_file(state, HERE / name / "model.safetensors")

    return save


def write(name: str, files: dict[str, bytes]) -> None:
    """Write files beside the weights."""
    (HERE / name).mkdir(exist_ok=True)
    for file, content in files.items():
        (HERE / name / file).write_bytes(content)


# marian, gpt2, llama, bert: folders of transformers.

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


RECIPES = {
    "s4": Recipe(article, teacher_forced(numbers), weights_of("s4", torch.float32), 1200),
    "leak": Recipe(article, leaking(teacher_forced(numbers)), weights_of("leak", torch.float16), 1200),
    "torch": Recipe(torchs, teacher_forced(letters), weights_of("torch", torch.float32), 1000),
    "marian": Recipe(marian, marian_loss, folder_of("marian"), 1000),
    "gpt2": Recipe(gpt2, next_piece, folder_of("gpt2"), 2000),
    "llama": Recipe(llama, next_piece, folder_of("llama"), 2000),
    "bert": Recipe(bert, bert_loss, folder_of("bert"), 1500),
}

if __name__ == "__main__":
    for chosen in sys.argv[1:] or list(RECIPES):
        RECIPES[chosen].save(train(chosen, RECIPES[chosen]))
