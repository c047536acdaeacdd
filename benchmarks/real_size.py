"""Folders of transformers with random weights, in common sizes, with tokenizers made on the spot.

    python -m benchmarks.real_size runs/sizes

    opus-mt     Marian, 6 + 6 layers, d_model 512, 8 heads, 59,514 pieces: 75 million parameters
    gpt2        GPT-2, 12 layers, d_model 768, 12 heads, 50,257 pieces: 124 million
    bert        BERT base with its MLM head, 12 layers, d_model 768, 12 heads, 30,522 pieces: 110 million
    qwen3       the shape of Qwen3-0.6B, d_model 1,024, 16 heads of which 8 of keys, 28 layers, with 32,768 pieces
                instead of 151,936: 474 million in 16 bits

A tokenizer learns from the texts of this project; meaningless names fill up its table. Random weights hardly ever end
an output, so lengths are those that a query asks for.
"""

import argparse
import io
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parent.parent
LINES_AT_ONCE = 4000  # characters of a line that SentencePiece reads


def texts() -> list[str]:
    """Lines of English: what this project says of itself, and in its code."""
    about = [ROOT / "README.md", ROOT / "benchmarks" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    about = [file for file in about if file.parent.name != "zh"]
    files = [*about, *sorted((ROOT / "transformer").rglob("*.py"))]
    lines = [line.strip() for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    return [line[:LINES_AT_ONCE] for line in lines if len(line) > 3]


def filled(pieces: Iterable[str], size: int) -> dict[str, int]:
    """A table of ids with as many pieces as the model has rows."""
    table = {piece: i for i, piece in enumerate(dict.fromkeys(pieces))}
    table |= {f"<unused{i}>": i for i in range(len(table), size)}
    return table


def _as_json(table: dict[str, int]) -> bytes:
    return json.dumps(table, ensure_ascii=False).encode()


def _sentencepiece() -> tuple[bytes, list[str]]:
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(texts()), model_writer=model, vocab_size=4000, hard_vocab_limit=False, minloglevel=2
    )
    found = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    return model.getvalue(), [found.IdToPiece(i) for i in range(3, found.GetPieceSize())]


def _byte_pairs(special: list[str]) -> tuple[dict[str, int], str]:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=6000, initial_alphabet=alphabet, special_tokens=special, show_progress=False
    )
    made.train_from_iterator(texts(), trainer)
    model = json.loads(made.to_str())["model"]
    merges = "".join(f"{' '.join(pair)}\n" for pair in model["merges"])
    return model["vocab"], f"#version: 0.2\n{merges}"


def _opus_mt(folder: Path) -> Any:
    from transformers import MarianConfig, MarianMTModel

    model, pieces = _sentencepiece()
    table = filled(["</s>", "<unk>", *pieces], 59_513) | {"<pad>": 59_513}
    files = {"source.spm": model, "target.spm": model, "vocab.json": _as_json(table)}
    _write(folder, files)
    return MarianMTModel(
        MarianConfig(
            vocab_size=59_514,
            d_model=512,
            encoder_layers=6,
            decoder_layers=6,
            encoder_attention_heads=8,
            decoder_attention_heads=8,
            encoder_ffn_dim=2048,
            decoder_ffn_dim=2048,
            activation_function="swish",
            static_position_embeddings=True,
            scale_embedding=True,
            max_position_embeddings=512,
            pad_token_id=59_513,
            decoder_start_token_id=59_513,
            eos_token_id=0,
            forced_eos_token_id=None,
        )
    )


def _gpt2(folder: Path) -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    vocabulary, merges = _byte_pairs([])
    table = filled(sorted(vocabulary, key=lambda piece: vocabulary[piece]), 50_256) | {"<|endoftext|>": 50_256}
    _write(folder, {"vocab.json": _as_json(table), "merges.txt": merges.encode()})
    return GPT2LMHeadModel(GPT2Config())


def _bert(folder: Path) -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
    from transformers import BertConfig, BertForMaskedLM

    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    made.train_from_iterator(
        texts(), trainers.WordPieceTrainer(vocab_size=6000, special_tokens=special, show_progress=False)
    )
    found = made.get_vocab()
    table = filled(sorted(found, key=lambda piece: found[piece]), 30_522)
    _write(folder, {"vocab.txt": "".join(f"{piece}\n" for piece in table).encode()})
    return BertForMaskedLM(BertConfig())


def _qwen3(folder: Path) -> Any:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import Qwen3Config, Qwen3ForCausalLM

    vocabulary, merges = _byte_pairs([])
    table = filled(sorted(vocabulary, key=lambda piece: vocabulary[piece]), 32_767)
    pairs = [(first, second) for first, second in map(str.split, merges.splitlines()[1:])]
    made = Tokenizer(models.BPE(vocab=table, merges=pairs))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken("<|endoftext|>", special=True)])
    _write(folder, {"tokenizer.json": made.to_str().encode()})
    config = Qwen3Config(
        vocab_size=32_768,
        hidden_size=1024,
        intermediate_size=3072,
        num_hidden_layers=28,
        num_attention_heads=16,
        num_key_value_heads=8,
        head_dim=128,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        eos_token_id=32_767,
        bos_token_id=32_767,
        dtype="bfloat16",
    )
    return Qwen3ForCausalLM(config).to(torch.bfloat16)


def _write(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).write_bytes(content)


MAKERS: dict[str, Callable[[Path], Any]] = {"opus-mt": _opus_mt, "gpt2": _gpt2, "bert": _bert, "qwen3": _qwen3}


def make(name: str, folder: Path) -> Path:
    """Write the folder of a model, unless it is there."""
    if not (folder / "model.safetensors").exists():
        folder.mkdir(parents=True, exist_ok=True)
        torch.manual_seed(0)
        model = MAKERS[name](folder)
        if hasattr(model, "generation_config"):
            model.generation_config.eos_token_id = model.config.eos_token_id
        model.save_pretrained(folder)
    return folder


def main() -> None:
    """Parse the command line, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--models", nargs="+", choices=MAKERS, default=list(MAKERS))
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name in options.models:
        folder = make(name, options.out / name)
        size = sum(file.stat().st_size for file in folder.iterdir())
        print(f"{folder}: {size / 1e6:,.0f} MB")


if __name__ == "__main__":
    main()
