"""Tiny vocabularies as other libraries store them, learned from a few lines, and strings to compare them with."""

import functools
import io
import json
import random
import unicodedata

import sentencepiece
import tokenizers
from tokenizers import models, normalizers, pre_tokenizers, trainers

from glassformer.extensions.tokenizers import subword_tokenizers as own
from tests.conftest import SOURCES, TARGETS

LINES = [
    *SOURCES,
    *TARGETS,
    "The quick brown fox doesn't jump over 12 lazy dogs; it's 3.50 € today, isn't it?",
    "Ein Käfer läuft über die große Straße – und «niemand» hält ihn auf!",
    "L'été dernier, j'ai mangé une crème brûlée à Liège.",
    "我喜欢喝咖啡，但是不喜欢喝茶。 你好世界 123",
    "Привет, мир! Как дела? Добрый вечер.",
    "مرحبا بالعالم ، كيف حالك؟",
    "A Ω and a Σ: ΟΔΥΣΣΕΥΣ, İstanbul, ǅ.",
    "fn main() { return x_1 + y[2]; } // #hash @at $5 ^ ~ `tick`",
]
MARKS = ["  ", "'s", "'RE", "e\u0301", "👩\u200d👧", *" \n\t\u00a0\u3000▁'…ﬁ½😀\u200b\ufeff"]


def sentencepiece_model(*, kind="unigram", size=160, lines=LINES, **ids):
    """A SentencePiece model with chosen special ids."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(lines * 3),
        model_writer=model,
        model_type=kind,
        vocab_size=size,
        hard_vocab_limit=False,
        character_coverage=0.98,
        num_threads=1,
        minloglevel=2,
        **ids,
    )
    return model.getvalue()


def pieces_of(model):
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.IdToPiece(i) for i in range(processor.GetPieceSize())]


def as_json(pieces):
    return json.dumps({piece: i for i, piece in enumerate(pieces)}, ensure_ascii=False).encode()


T5_IDS = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
FAIRSEQ_IDS = {"unk_id": 0, "bos_id": 1, "eos_id": 2}


def marian(*, separate=False):
    source, target = (sentencepiece_model(lines=lines) for lines in (LINES, LINES[:-2]))
    own = [[piece for piece in pieces_of(model)[3:] if piece != "fox"] for model in (source, target)]
    names = [
        ["</s>", "<unk>", *(dict.fromkeys(own[0] + [] if separate else own[0] + own[1])), ">>fra<<", ">>deu<<", "<pad>"]
    ]
    files = {"source.spm": source, "target.spm": target, "vocab.json": as_json(names[0])}
    if separate:
        files["target_vocab.json"] = as_json(["</s>", "<unk>", *own[1], "<pad>"])
    return files


def t5(**changes):
    return {"spiece.model": sentencepiece_model(**(T5_IDS | changes))}


def fairseq(**changes):
    return {"sentencepiece.bpe.model": sentencepiece_model(**(FAIRSEQ_IDS | changes))}


def m2m100():
    model = sentencepiece_model(**FAIRSEQ_IDS)
    names = ["<s>", "<pad>", "</s>", "<unk>", *pieces_of(model)[3:-5]]
    return {"sentencepiece.bpe.model": model, "vocab.json": as_json(names)}


def byte_pairs(special=("<|endoftext|>",)):
    """vocab.json and merges.txt, as the library that trains them writes them."""
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=420, initial_alphabet=alphabet, special_tokens=list(special))
    made.train_from_iterator(LINES * 3, trainer)
    model = json.loads(made.to_str())["model"]
    merges = "\n".join(" ".join(pair) for pair in model["merges"])
    return {"vocab.json": json.dumps(model["vocab"]).encode(), "merges.txt": f"#version: 0.2\n{merges}\n".encode()}


def word_pieces(*, lower_case=True):
    made = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=lower_case)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    made.train_from_iterator(LINES * 3, trainers.WordPieceTrainer(vocab_size=260, special_tokens=special))
    vocabulary = made.get_vocab()
    return {"vocab.txt": "".join(f"{piece}\n" for piece in sorted(vocabulary, key=vocabulary.get)).encode()}


def strings(count=2_000, *, special=(), seed=0, without=""):
    """Texts of words, signs, white space, special pieces and characters of all of Unicode that Python knows."""
    rng = random.Random(seed)
    words = [word for line in LINES for word in line.split()]
    letters = [c for line in LINES for c in line]

    def part():
        chance = rng.random()
        if chance < 0.45:
            return rng.choice(words)
        if chance < 0.6:
            return "".join(rng.choices(letters, k=rng.randint(1, 6)))
        if chance < 0.75:
            return rng.choice(MARKS)
        if chance < 0.8 and special:
            return rng.choice(special)
        return "".join(anything(rng) for _ in range(rng.randint(1, 3)))

    found = []
    while len(found) < count:
        text = "".join(part() + rng.choice(["", " ", " "]) for _ in range(rng.randint(1, 9)))
        if not any(c in without for c in text):
            found.append(text)
    return found


def anything(rng):
    while True:
        c = chr(rng.choice([rng.randint(0x20, 0x17F), rng.randint(0, 0x2FFF), rng.randint(0, 0x1FFFF)]))
        if unicodedata.category(c) not in ("Cn", "Cs"):
            return c


@functools.cache
def characters():
    return [c for c in map(chr, range(1, 0x110000)) if unicodedata.category(c) not in ("Cn", "Cs", "Co")]


@functools.cache
def newer_than_theirs():
    """Characters that the library's table of Unicode 8 does not know yet: 500 of 145,000, of rare scripts."""
    cuts = pre_tokenizers.BertPreTokenizer()
    cleans = normalizers.BertNormalizer(lowercase=True)
    ours = own.Cleaning()

    def differ(some):
        """Whether of these any does; each stands between letters."""
        text = " ".join(f"a{c}b" for c in some)
        plain = " ".join(f"a{c}b" for c in some if not c.isspace())
        return cleans.normalize_str(text) != ours.clean(text) or (
            [part for part, _ in cuts.pre_tokenize_str(plain)] != list(own.cleaned_words(plain))
        )

    parts = (characters()[start : start + 100] for start in range(0, len(characters()), 100))
    return "".join(c for part in parts if differ(part) for c in part if differ([c]))
