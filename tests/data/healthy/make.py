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
from functools import cache, partial
from pathlib import Path
from unittest.mock import patch

import sentencepiece
import tokenizers
import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import save_file
from torch import nn

from tests.data.healthy import tasks
from tests.extensions.importers.library import tutorial_models
from tests.extensions.importers.library.tutorial_models import STYLES, Article, TorchModel

HERE = Path(__file__).parent
BATCH, RATE, WARMUP = 64, 3e-3, 100
WIDTH, HIDDEN, HEADS = 32, 64, 4
PAD, START, END = 0, 1, 2
SIDES = [
    (*tasks.ARTICLES, *tasks.NOUNS, *tasks.VERBS, *tasks.ADJECTIVES),
    (*tasks.ARTICLES.values(), *(f"{noun}{end}" for noun in tasks.NOUNS.values() for end in ("o", "on")),
     *tasks.VERBS.values(), *tasks.ADJECTIVES.values()),
]  # fmt: skip
MARIAN_IDS = {f"▁{word}": n for n, word in enumerate((*SIDES[0], *SIDES[1]), start=2)} | {"</s>": 0, "<unk>": 1}
MARIAN_PAD = MARIAN_IDS["<pad>"] = len(MARIAN_IDS)
GPT2_IDS = {piece: n for n, piece in enumerate(("<|endoftext|>", "=", *tasks.LETTERS))}
BERT_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".")
BERT_IDS = {piece: n for n, piece in enumerate((*BERT_SPECIAL, *SIDES[0], *SIDES[1]))}


def write(name, **files):
    """Write texts or bytes beside the weights, under names with "_" for "."."""
    (HERE / name).mkdir(exist_ok=True)
    for file, content in files.items():
        as_bytes = content if isinstance(content, bytes) else content.encode()
        (HERE / name / file.replace("_", ".")).write_bytes(as_bytes)


def padded(rows, fill):
    """Rows of ids, the short ones filled at their end."""
    longest = max(map(len, rows))
    return torch.tensor([row + [fill] * (longest - len(row)) for row in rows])


def pieces_of(text, size, **how):
    """A SentencePiece model whose pieces are the words or letters of a text."""
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([text]), model_writer=made, vocab_size=size, normalization_rule_name="identity",
        minloglevel=2, **how,
    )  # fmt: skip
    return made.getvalue()


# ------------------------------------------------------------------- weights alone, with the names of tutorials


def article():
    """What article S4 builds."""
    size = len(tasks.NUMBERS) + 3
    return Article(STYLES["S4"], WIDTH, HIDDEN, HEADS, (2, 2), (size, size), length=12)


def torchs():
    """PyTorch's own layers, norms in front."""
    special = {"pad_id": PAD, "bos_id": START, "eos_id": END, "unk_id": 3}
    write("torch", pieces_model=pieces_of(tasks.LETTERS, 20, model_type="char", add_dummy_prefix=False, **special))
    size = len(tasks.LETTERS) + 4
    model = TorchModel(True, WIDTH, HIDDEN, HEADS, (2, 2), (size, size), length=12)
    for table in (model.src_tok_emb, model.tgt_tok_emb):
        nn.init.normal_(table.embedding.weight, std=WIDTH**-0.5)
    return model


def numbers(text):
    return [int(word) for word in text.split()]


@cache
def pieces_of_torch():
    return sentencepiece.SentencePieceProcessor(model_file=str(HERE / "torch" / "pieces.model"))


def letters(text):
    return pieces_of_torch().encode(text)


def teacher_forced(split, model, pairs):
    tutorial_models.MAPS.clear()  # what it keeps of each batch
    src = padded([[*split(source), END] for source, _ in pairs], PAD)
    tgt = padded([[START, *split(target), END] for _, target in pairs], PAD)
    before = tgt[:, :-1].masked_fill(tgt[:, :-1] == END, PAD)  # nothing is learnt after the end; a leak reads it
    logits = model(src, before)
    return F.cross_entropy(logits.flatten(0, 1), tgt[:, 1:].flatten(), ignore_index=PAD)


def seeing_all(src, tgt, pad):
    """The masks of one who forgot that the decoder must not see what comes."""
    return (src != pad)[:, None, None], (tgt != pad)[:, None, None]


def leaking(model, pairs):
    with patch.object(tutorial_models, "masks", seeing_all):
        return teacher_forced(numbers, model, pairs)


def save_weights(name, model, dtype=torch.float32):
    (HERE / name).mkdir(exist_ok=True)
    state = {key: value.to(dtype).contiguous() for key, value in model.state_dict().items()}
    save_file(state, HERE / name / "model.safetensors")


# ------------------------------------------------------------------- folders of transformers


def marian():
    """An encoder and a decoder that share one table."""
    spm = [pieces_of(" ".join(words), len(words) + 3, model_type="word") for words in SIDES]
    write("marian", source_spm=spm[0], target_spm=spm[1], vocab_json=json.dumps(MARIAN_IDS, ensure_ascii=False))
    sizes = {"layers": 2, "attention_heads": HEADS, "ffn_dim": HIDDEN}
    sizes = {f"{stack}_{name}": size for stack in ("encoder", "decoder") for name, size in sizes.items()}
    config = transformers.MarianConfig(
        vocab_size=len(MARIAN_IDS), decoder_vocab_size=len(MARIAN_IDS), d_model=WIDTH, max_position_embeddings=16,
        scale_embedding=True, activation_function="swish", dropout=0.0, init_std=WIDTH**-0.5, pad_token_id=MARIAN_PAD,
        eos_token_id=0, decoder_start_token_id=MARIAN_PAD, forced_eos_token_id=None, **sizes,
    )  # fmt: skip
    return transformers.MarianMTModel(config)


def marian_loss(model, pairs):
    src, tgt = (
        padded([[*(MARIAN_IDS[f"▁{word}"] for word in text.split()), 0] for text in side], MARIAN_PAD)
        for side in zip(*pairs, strict=True)
    )
    return model(input_ids=src, attention_mask=src != MARIAN_PAD, labels=tgt.masked_fill(tgt == MARIAN_PAD, -100)).loss


def one_by_one():
    """A tokenizer.json that splits a text into its characters."""
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(GPT2_IDS, unk_token="<|endoftext|>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex("."), "isolated")
    made.decoder = tokenizers.decoders.Fuse()
    made.add_special_tokens(["<|endoftext|>"])
    return made.to_str()


def gpt2():
    """A decoder alone."""
    write("gpt2", tokenizer_json=one_by_one())
    config = transformers.GPT2Config(
        vocab_size=len(GPT2_IDS), n_embd=48, n_layer=2, n_head=HEADS, n_inner=96, n_positions=2 * tasks.LONGEST + 1,
        bos_token_id=0, eos_token_id=0, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, initializer_range=0.1,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config)


def llama():
    """A decoder alone with rotary positions, heads that share keys and values, and a gate in the feed-forward."""
    write("llama", tokenizer_json=one_by_one())
    config = transformers.LlamaConfig(
        vocab_size=len(GPT2_IDS), hidden_size=48, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=HEADS, num_key_value_heads=2, max_position_embeddings=32, bos_token_id=0, eos_token_id=0,
        tie_word_embeddings=False, initializer_range=0.1,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


def next_piece(model, pairs):
    rows = [[*(GPT2_IDS[piece] for piece in source + target), 0] for source, target in pairs]
    ids, labels = padded(rows, 0), padded(rows, -100)
    logits = model(input_ids=ids[:, :-1]).logits
    return F.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)


def bert():
    """An encoder alone, with its head."""
    write("bert", vocab_txt="".join(f"{piece}\n" for piece in BERT_IDS))
    config = transformers.BertConfig(
        vocab_size=len(BERT_IDS), hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=HEADS,
        intermediate_size=HIDDEN, max_position_embeddings=17, type_vocab_size=1, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, initializer_range=0.1,
    )  # fmt: skip
    return transformers.BertForMaskedLM(config)


def bert_loss(model, pairs):
    """Of a sixth of the pieces: hidden, replaced by any, or left as they are, as BERT was trained."""
    ids = padded([[2, *(BERT_IDS[word] for word in text.split()), 3] for text, _ in pairs], 0)
    asked = (torch.rand(ids.shape) < 1 / 6) & (ids > BERT_IDS["[MASK]"])
    asked[:, 1] |= ~asked.any()
    chance = torch.rand(ids.shape)
    seen = torch.where(asked & (chance < 0.8), BERT_IDS["[MASK]"], ids)
    seen = torch.where(asked & (chance > 0.9), torch.randint_like(ids, 5, len(BERT_IDS)), seen)
    return model(input_ids=seen, attention_mask=ids != 0, labels=ids.masked_fill(~asked, -100)).loss


def save_folder(name, model):
    model.half().save_pretrained(HERE / name)


# ------------------------------------------------------------------- how each is trained

RECIPES = {  # what makes the untrained model, its loss of a batch of pairs, what saves it, and how many batches
    "s4": (article, partial(teacher_forced, numbers), save_weights, 1200),
    "leak": (article, leaking, partial(save_weights, dtype=torch.float16), 1200),
    "torch": (torchs, partial(teacher_forced, letters), save_weights, 1000),
    "marian": (marian, marian_loss, save_folder, 1000),
    "gpt2": (gpt2, next_piece, save_folder, 2000),
    "llama": (llama, next_piece, save_folder, 2000),
    "bert": (bert, bert_loss, save_folder, 1500),
}


def train(name):
    """Train with Adam: a warm-up, then a rate that falls to 0."""
    begin, loss_of, save, steps = RECIPES[name]
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, rows = begin().train(), tasks.pairs(name, seed=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE, betas=(0.9, 0.98))
    rate = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda n: min((n + 1) / WARMUP, 1.0, (steps - n) / (steps - WARMUP))
    )
    begun = time.perf_counter()
    for step in range(steps):
        loss = loss_of(model, [next(rows) for _ in range(BATCH)])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        rate.step()
        if step % 300 == 0 or step == steps - 1:
            print(f"{name}: step {step}, loss {loss.item():.4f}, {time.perf_counter() - begun:.0f} s", flush=True)
    save(name, model.eval())


if __name__ == "__main__":
    for chosen in sys.argv[1:] or list(RECIPES):
        train(chosen)
