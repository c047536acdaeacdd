"""Train the models that check the doctor's thresholds: healthy ones of many tasks, and faulty ones.

    python -m benchmarks.doctor_models --out /tmp/models                    all of them, about half a minute each
    python -m benchmarks.doctor_models --out /tmp/models copy-post leak-add  some
    python -m benchmarks.doctor --models /tmp/models                        examine them

Each is a checkpoint folder without a tokenizer (an encoder-only model has one, because its [MASK] needs a name), with
a file of unseen pairs of its task. Names that begin with `leak`, `ahead` and `unshifted` are faulty: trained without
the causal mask, with one that shows one piece too many, and on targets that were not shifted.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from glassformer.extensions.tokenizers.options import Options
from glassformer.extensions.tokenizers.tokenizer_families import Vocabularies
from transformer.checkpoint.save import CheckpointContents, save
from transformer.model.config import ModelConfig
from transformer.model.masks import causal_mask
from transformer.model.taps import NO_TAP, Replacer, Tap, all_seen, tap_of
from transformer.model.transformer import Transformer

PAD, START, END, FIRST = 0, 1, 2, 3
SYMBOLS, PLUS, EQUALS = 10, FIRST + 10, FIRST + 11
SIZE, LENGTH, BATCH, RATE, WARMUP = FIRST + 12, 24, 64, 3e-3, 100
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *map(str, range(SYMBOLS))]  # of an encoder alone
MASK, FIRST_PIECE = 4, 5

Row = list[int]
Task = Callable[[random.Random], tuple[Row, Row]]


def _row(rng: random.Random) -> Row:
    return [FIRST + rng.randrange(SYMBOLS) for _ in range(rng.randint(2, 8))]


def _sum(rng: random.Random) -> tuple[Row, Row]:
    a, b = rng.randrange(100), rng.randrange(100)
    source = [*_digits(a), PLUS, *_digits(b)]
    return source, _digits(a + b)


def _digits(n: int) -> Row:
    return [FIRST + int(digit) for digit in str(n)]


def _of_row(change: Callable[[Row], Row]) -> Task:
    def pair(rng: random.Random) -> tuple[Row, Row]:
        row = _row(rng)
        return row, change(row)

    return pair


TASKS: dict[str, Task] = {
    "copy": _of_row(list),
    "reverse": _of_row(lambda row: row[::-1]),
    "sort": _of_row(sorted),
    "next": _of_row(lambda row: [FIRST + (i - FIRST + 1) % SYMBOLS for i in row]),
    "add": _sum,
}


@dataclass(frozen=True)
class Recipe:
    """How one is made.

    Attributes:
        task: Its name.
        changes: Fields of its config.
        smoothing: Of the labels.
        wrong: What it is trained with: "leak", "ahead", "unshifted", or nothing.
        steps: Batches.
    """

    task: str
    changes: dict[str, Any] = field(default_factory=dict)
    smoothing: float = 0.0
    wrong: str = ""
    steps: int = 1200


DECODER = {"n_encoder_layers": 0, "append_source_eos": False, "shared_vocab": True}
ENCODER = {"n_decoder_layers": 0, "shared_vocab": True, "mlm_head": True, "prepend_source_bos": True}
POST = {"norm": "post", "final_norm": False}
RECIPES: dict[str, Recipe] = {
    "copy-post-1": Recipe("copy", POST | {"n_heads": 1, "d_model": 32}),
    "copy-rotary": Recipe("copy", DECODER | {"positions": "rotary", "norm_kind": "rms", "gated": True}),
    "copy-smooth": Recipe("copy", {"n_heads": 2, "positions": "learned"}, smoothing=0.2),
    "reverse-8": Recipe("reverse", {"n_heads": 8, "d_model": 32}),
    "reverse-post": Recipe("reverse", POST | {"positions": "learned", "activation": "gelu"}, smoothing=0.1),
    "reverse-gpt": Recipe("reverse", DECODER | {"positions": "learned", "activation": "gelu_tanh"}, steps=2000),
    "reverse-wide": Recipe("reverse", {"d_model": 96, "n_heads": 4, "tie_output": False}),
    "sort-gelu": Recipe("sort", {"activation": "gelu", "n_heads": 2}),
    "sort-narrow": Recipe("sort", {"d_head": 2, "n_heads": 8, "d_model": 32}),
    "sort-bert": Recipe("sort", ENCODER | {"activation": "gelu"}),
    "next-untied": Recipe("next", POST | {"tie_output": False, "shared_vocab": False, "n_heads": 2}),
    "next-one-layer": Recipe("next", {"n_encoder_layers": 1, "n_decoder_layers": 1, "scale_embedding": False}),
    "next-deep": Recipe("next", {"n_encoder_layers": 4, "n_decoder_layers": 4, "d_model": 32}),
    "add-pre": Recipe("add", steps=4000),
    "add-unscaled": Recipe("add", {"score_scale": 1.0}, steps=4000),
    "add-gpt": Recipe("add", DECODER | {"positions": "rotary"}, steps=4000),
    "add-smooth": Recipe("add", {"n_heads": 8, "positions": "learned"}, smoothing=0.1, steps=4000),
    "sort-by-width": Recipe("sort", {"score_scale": 0.125, "n_heads": 4, "d_model": 64}),
    "leak-add": Recipe("add", wrong="leak"),
    "leak-add-smooth": Recipe("add", smoothing=0.1, wrong="leak"),
    "leak-sort-post": Recipe("sort", POST | {"positions": "learned"}, wrong="leak"),
    "leak-reverse-gpt": Recipe("reverse", DECODER | {"positions": "rotary"}, wrong="leak"),
    "leak-copy-1": Recipe("copy", {"n_heads": 1, "scale_embedding": False, "tie_output": False}, wrong="leak"),
    "ahead-add": Recipe("add", wrong="ahead"),
    "unshifted-add": Recipe("add", wrong="unshifted"),
}


def config_of(recipe: Recipe) -> ModelConfig:
    """Its features."""
    size = len(PIECES) if "mlm_head" in recipe.changes else SIZE
    plain: dict[str, Any] = {
        "n_encoder_layers": 2, "n_decoder_layers": 2, "d_model": 64, "n_heads": 4, "dropout": 0.0, "max_len": LENGTH,
        "src_vocab_size": size, "tgt_vocab_size": size, "shared_vocab": True, "pad_id": PAD, "unk_id": None,
        "bos_id": START, "eos_id": END, "decoder_start_id": START,
    }  # fmt: skip
    ids = {"unk_id": 1, "bos_id": 2, "eos_id": 3, "decoder_start_id": 2} if "mlm_head" in recipe.changes else {}
    config = plain | ids | recipe.changes
    return ModelConfig(**({"d_ff": 2 * config["d_model"]} | config))


def padded(rows: list[Row], fill: int = PAD) -> Tensor:
    """Rows of ids, the short ones filled at their end."""
    longest = max(map(len, rows))
    return torch.tensor([row + [fill] * (longest - len(row)) for row in rows])


def loss_of(model: Transformer, recipe: Recipe, pairs: list[tuple[Row, Row]]) -> Tensor:
    """The loss of a batch."""
    if model.anatomy.fills:
        return _of_hidden(model, pairs)
    if model.anatomy.reads:
        source = padded([[*source, END] for source, _ in pairs])
        whole = padded([[START, *target, END] for _, target in pairs])
        wanted = whole[:, 1:]
    else:
        whole = padded([[*source, EQUALS, *target, END] for source, target in pairs])
        source = whole[:, :-1]
        wanted = padded([[PAD] * len(s) + [*t, END] for s, t in pairs])  # of the prompt nothing is to be learnt
    read = whole[:, 1:] if recipe.wrong == "unshifted" else whole[:, :-1]
    logits = model(source, read, tap=_tap(model, recipe.wrong))
    return F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=PAD, label_smoothing=recipe.smoothing)


def _tap(model: Transformer, wrong: str) -> Tap:
    """What makes the mask wrong."""
    if wrong not in ("leak", "ahead"):
        return NO_TAP
    ahead = all_seen if wrong == "leak" else lambda mask: mask | causal_mask(mask.size(-1), offset=1)[..., :-1]
    return tap_of(Replacer({model.anatomy.attention("decoder").site("*", "mask"): ahead}))


def _of_hidden(model: Transformer, pairs: list[tuple[Row, Row]]) -> Tensor:
    """A sixth of the pieces is hidden, of a row and what becomes of it side by side."""
    ids = padded([[2, *(i + FIRST_PIECE - FIRST for i in source + target), 3] for source, target in pairs])
    asked = (torch.rand(ids.shape) < 1 / 6) & (ids >= FIRST_PIECE)
    asked[:, 1] |= ~asked.any()
    logits = model.project(model.encode(torch.where(asked, MASK, ids)))
    return F.cross_entropy(logits[asked], ids[asked])


def train(recipe: Recipe, rng: random.Random, name: str) -> Transformer:
    """Train with Adam: a warm-up, then a rate that falls to 0."""
    torch.manual_seed(rng.randrange(2**31))
    model, pair = Transformer(config_of(recipe)).train(), TASKS[recipe.task]
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE, betas=(0.9, 0.98))
    rate = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda n: min((n + 1) / WARMUP, (recipe.steps - n) / (recipe.steps - WARMUP))
    )
    begun = time.perf_counter()
    for _ in range(recipe.steps):
        loss = loss_of(model, recipe, [pair(rng) for _ in range(BATCH)])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        rate.step()
    print(f"{name}: loss {loss.item():.4f}, {time.perf_counter() - begun:.0f} s", flush=True)
    return model.requires_grad_(False).eval()


def make(name: str, out: Path) -> None:
    """Train one and write it, with a hundred pairs of its task."""
    recipe, rng = RECIPES[name], random.Random(name)
    model = train(recipe, rng, name)
    vocabulary = Vocabularies("raw", Options(size=SIZE, special_ids=(PAD, START, END)))
    if model.anatomy.fills:
        vocabulary = Vocabularies("bert", Options(), {"vocab.txt": "\n".join(PIECES).encode()})
    save(
        CheckpointContents(model.config, model.state_dict(), vocabulary, {"title": name}),
        out / name,
        dtype=torch.float32,
    )
    found = {tuple(source): target for source, target in (TASKS[recipe.task](rng) for _ in range(300))}
    lines = [_line(model, list(source), target) for source, target in list(found.items())[:100]]
    (out / name / "pairs.tsv").write_text("\n".join(lines), encoding="utf-8")


def _line(model: Transformer, source: Row, target: Row) -> str:
    if model.anatomy.fills:
        return " ".join(PIECES[i + FIRST_PIECE - FIRST] for i in source + target)
    before = source if model.anatomy.reads else [*source, EQUALS]
    return f"{' '.join(map(str, before))}\t{' '.join(map(str, target))}"


def main() -> int:
    """Train those that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=", ".join(RECIPES))
    parser.add_argument("--out", type=Path, required=True, help="folder for the checkpoints")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name in options.names or RECIPES:
        if not (options.out / name / "pairs.tsv").exists():
            make(name, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
