"""A large file against transformers: seconds, CPU and memory to open a folder of opus-mt's size and write a token.

Both programs open the same folder as Hugging Face publishes models, with random weights (`benchmarks.same_model`) and
a tokenizer of SentencePiece that has learned from this project's texts, on one thread; what they read and write is
compared. First in a new process, in which only torch has been imported; then once more there, when all is imported.
Memory is the most that the process has had. The folder is in the disk's cache.

Needs: pip install transformers (tried with 5.23.0).
"""

import io
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks import same_model
from benchmarks.harness import ROOT, Comparison, Reply, Settings, turns, worker

MODEL, SIZE, LINE = "opus-mt", 58_101, 4000
SENTENCE = "The encoder reads the whole source and turns it into the memory, one vector a source token."


def measure(settings: Settings) -> Iterator[Comparison]:
    """The table."""
    with settings.work() as work:
        folder = same_model.written(MODEL, work)
        _write_tokenizer(folder)
        sides = {side: partial(_opened, side, str(folder)) for side in ("ours", "theirs")}
        found: dict[str, list[list[Reply]]] = turns(sides, settings.n_turns(5), warm_up=1)
    if len({str(reply.said) for side in found.values() for replies in side for reply in replies}) > 1:
        raise RuntimeError(f"the programs do not read and write the same: {found}")
    figures = (("seconds", "s", 0, 1), ("CPU", "s", 0, 2), ("CPU, once all is imported", "s", 1, 2))
    for what, unit, turn, i in (*figures, ("most memory", "MB", 1, 3)):
        mine, theirs = ([float(replies[turn][i]) for replies in found[side]] for side in ("ours", "theirs"))
        peer = "transformers, eager, with attentions"
        yield Comparison(what=f"opening opus-mt's size: {what}", ours=mine, peer=theirs, peer_name=peer, unit=unit)


def _write_tokenizer(folder: Path) -> None:
    """Pieces of a tokenizer that has read our documents; meaningless names fill up its table."""
    import sentencepiece

    texts = [file.read_text(encoding="utf-8") for file in sorted((ROOT / "docs").glob("*.md"))]
    lines = [line[:LINE] for text in texts for line in text.splitlines() if len(line) > 3]
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(lines), model_writer=made, vocab_size=4000, hard_vocab_limit=False, minloglevel=2
    )
    found = sentencepiece.SentencePieceProcessor(model_proto=made.getvalue())
    pieces = ["<pad>", "<unk>", "<s>", "</s>", *(found.IdToPiece(i) for i in range(3, found.GetPieceSize()))]
    pieces += [f"<unused{i}>" for i in range(len(pieces), SIZE)]
    (folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}), encoding="utf-8")
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(made.getvalue())


def _opened(side: str, folder: str) -> list[Reply]:
    with worker("large_files", side, folder) as ask:
        return [ask(None), ask(None)]


def side(name: str, folder: str) -> Callable[[object], list[list[int]]]:
    """One program, which answers with the ids that it reads and writes."""
    torch.set_num_threads(1)
    return partial(_ours if name == "ours" else _theirs, folder)


def _ours(folder: str, _: object) -> list[list[int]]:
    import transformer

    checkpoint = transformer.load(folder)
    trace = checkpoint.run(checkpoint.query(SENTENCE, max_new=1))
    return [list(trace.src_ids), list(trace.tgt_ids)]


def _theirs(folder: str, _: object) -> list[list[int]]:
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    model = AutoModelForSeq2SeqLM.from_pretrained(folder, attn_implementation="eager").eval()
    src = AutoTokenizer.from_pretrained(folder)(SENTENCE, return_tensors="pt").input_ids
    options: dict[str, Any] = {"max_new_tokens": 1, "num_beams": 1, "do_sample": False, "output_attentions": True}
    with torch.inference_mode():
        found = model.generate(src, attention_mask=torch.ones_like(src), return_dict_in_generate=True, **options)
    return [src[0].tolist(), [int(found.sequences[0, -1])]]
