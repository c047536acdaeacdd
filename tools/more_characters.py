"""A checkpoint whose vocabularies have the characters of a text that they lacked, to go on training from.

    python -m tools.more_characters checkpoints/en-fr en-fr-train-first.tsv --out en-fr-start

A character that stands in the text often enough and in no piece becomes a piece, the least likely of all, behind the
others; so what was split before is split the same way, and an id means what it meant. Its row in the table begins as
numbers drawn with the spread of the rows that are there. `checkpoints/en-fr` had no digit but 0 and 1, and no É.
"""

import argparse
import collections
import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path

import torch
from sentencepiece import SentencePieceProcessor, sentencepiece_model_pb2

from transformer.checkpoint.load import CARD, load
from transformer.checkpoint.save import CheckpointContents, save
from transformer.checkpoint.tokenizer_files import TOKENIZER_NAMES
from transformer.text.tokenizer import normalise

LEAST = 5  # times in the text; digits once


def missing(model: bytes, texts: Iterable[str]) -> list[str]:
    """Characters that a SentencePiece model lacks, the most frequent first."""
    pieces = SentencePieceProcessor(model_proto=model)
    counts: collections.Counter[str] = collections.Counter()
    for text in texts:
        found = pieces.encode(text, return_type="proto").pieces
        counts.update(char for piece in found if piece.id == pieces.unk_id() for char in piece.surface)
    return [char for char, n in counts.most_common() if n >= LEAST or char.isdigit()]


def with_characters(model: bytes, characters: Iterable[str]) -> bytes:
    """The SentencePiece model with further pieces behind its own."""
    grown = sentencepiece_model_pb2.ModelProto.FromString(model)  # type: ignore[attr-defined]  # made when imported
    least = min(piece.score for piece in grown.pieces)
    for char in characters:
        grown.pieces.add(piece=char, score=least - 1)
    grown.trainer_spec.vocab_size = len(grown.pieces)
    return grown.SerializeToString()


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("text", type=Path, help="source TAB target, one pair a line")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.manual_seed(0)
    checkpoint = load(options.checkpoint)
    state = dict(checkpoint.model.state_dict())
    lines = (line.split("\t") for line in options.text.read_text("utf-8").splitlines())
    sources, targets = zip(*lines, strict=True)
    sides = [normalise(text, checkpoint.config.normalisation) for text in sources], targets
    names = TOKENIZER_NAMES[1 if checkpoint.config.shared_vocab else 2]
    models = [(options.checkpoint / name).read_bytes() for name in names]
    texts = [[text for side in sides for text in side]] if len(names) == 1 else sides
    for place, (table, own) in enumerate(zip(("src_table", "tgt_table"), texts, strict=False)):
        characters = missing(models[place], own)
        models[place] = with_characters(models[place], characters)
        rows = state[table].std() * torch.randn(len(characters), state[table].shape[1])
        state[table] = torch.cat([state[table], rows])
        print(f"{names[place]}: {len(characters)} characters: {''.join(characters)}")
    config = dataclasses.replace(
        checkpoint.config, src_vocab_size=len(state["src_table"]),
        tgt_vocab_size=len(state["src_table" if len(names) == 1 else "tgt_table"]),
    )  # fmt: skip
    card = json.loads((options.checkpoint / CARD).read_text("utf-8"))
    save(CheckpointContents(config, state, tuple(models), card), options.out)


if __name__ == "__main__":
    main()
