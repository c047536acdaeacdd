"""Does ranking find what a file does not say? Models with known fields that are hidden.

    python -m benchmarks.recovery shipped           # the checkpoints of this repository
    python -m benchmarks.recovery gpt --seconds 60  # a decoder-only model like GPT-2, trained here for a minute

Each prints a Markdown table: the true value, the choices with their losses, best first, and what the texts show.
Shipped checkpoints are tried with pairs, if references are known, and with texts alone. `gpt` reads the characters of
this repository's texts and saves its model as in tutorials, so the whole import is tested; it never sees padding or
an end, so the true values of these are unknown.
"""

import argparse
import random
import string
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from glassformer.extensions.importers.library.answer_ranking import best_answers, scored
from glassformer.extensions.importers.library.opening import preview
from glassformer.extensions.importers.library.report import Choice, Field, ImportReport
from transformer.analysis.losses import Samples, Variants
from transformer.checkpoint.load import Checkpoint
from transformer.checkpoint.load import load as native
from transformer.checkpoint.opening import load
from transformer.i18n import say
from transformer.model.config import ModelConfig
from transformer.model.transformer import Transformer

ROOT = Path(__file__).parents[1]
STRUCTURE = ("n_heads", "norm", "scale_embedding", "activation")
IDS = ("pad_id", "unk_id", "bos_id", "eos_id", "append_source_eos")
WINDOW, ROWS, LINES = 64, 32, 24
# What a tutorial calls the parts of our decoder.
NAMES = (
    ("src_table", "token_embedding.weight"),
    ("decoder.embedding.positions.table", "pos_embedding.weight"),
    ("decoder.final_norm", "decoder.norm"),
    ("self_attn.q_proj", "self_attn.W_q"),
    ("self_attn.k_proj", "self_attn.W_k"),
    ("self_attn.v_proj", "self_attn.W_v"),
    ("self_attn.out_proj", "self_attn.W_o"),
    ("ffn.up_proj", "feed_forward.fc1"),
    ("ffn.down_proj", "feed_forward.fc2"),
    ("self_attn_residual.norm", "norm1"),
    ("ffn_residual.norm", "norm2"),
)


@dataclass(frozen=True)
class Found:
    """A ranking that is done."""

    report: ImportReport
    truth: Mapping[str, Any]
    seconds: float


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["shipped", "gpt"])
    parser.add_argument("--seconds", type=float, default=60.0, help="seconds of training")
    options = parser.parse_args()
    torch.manual_seed(1)
    if options.what == "gpt":
        _print(f"GPT-2's kind, {options.seconds:.0f} s of training", _of_gpt(options.seconds))
        return
    for name in ("reverse", "zh-en", "en-fr"):
        checkpoint = native(ROOT / "checkpoints" / name)
        for known in (True, False) if _samples(checkpoint).targets else (False,):
            _print(f"{name}, {'pairs' if known else 'texts alone'}", _of_shipped(checkpoint, known=known))


def _print(title: str, found: Found) -> None:
    best = best_answers(found.report) | found.report.decided
    right = [name for name, value in found.truth.items() if value == best.get(name)]
    print(f"\n### {title}: {len(right)} of {len(found.truth)} right, {found.seconds:.1f} s\n")
    print(*found.report.notes, sep="\n")
    print("\n| field | truth | choices with their losses | what the texts tell |\n|---|---|---|---|")
    for field in found.report.fields:
        if field.name in found.truth:
            choices = ", ".join(f"{one.value} {one.score:.4f}" for one in field.choices[:6] if one.score is not None)
            mark = "" if field.name in right else " **wrong**"
            print(f"| {field.name} | {found.truth[field.name]}{mark} | {choices} | {field.evidence} |")


def _of_shipped(checkpoint: Checkpoint, *, known: bool) -> Found:
    config = checkpoint.config
    choices: dict[str, list[Any]] = {
        "n_heads": [n for n in range(1, config.d_model + 1) if config.d_model % n == 0],
        "norm": ["post", "pre"],
        "scale_embedding": [False, True],
        "activation": ["silu", "gelu_tanh", "gelu", "relu"],
        "append_source_eos": [False, True],
    }
    fields = tuple(
        Field(name, "asked", None, say("It is hidden."), tuple(map(Choice, choices.get(name, []))))
        for name in (*STRUCTURE, *IDS)
    )
    samples = _samples(checkpoint)
    samples = samples if known else Samples(samples.sources)
    report = ImportReport(checkpoint.name, say("A checkpoint."), (), (), fields)
    start = time.perf_counter()
    report = scored(report, Variants(checkpoint).get, samples)
    return Found(report, {name: getattr(config, name) for name in (*STRUCTURE, *IDS)}, time.perf_counter() - start)


def _samples(checkpoint: Checkpoint) -> Samples:
    if checkpoint.name == "reverse":
        rng = random.Random(1)
        words = ["".join(rng.choices(string.ascii_lowercase, k=rng.randint(2, 11))) for _ in range(LINES)]
        return Samples(tuple(words), tuple(word[::-1] for word in words))
    glosses = checkpoint.card.glosses
    if not glosses:
        return Samples(tuple(checkpoint.card.examples))
    return Samples(tuple(glosses), tuple(glosses.values()))


def _of_gpt(seconds: float) -> Found:
    english = [path for path in sorted(ROOT.glob("*.md")) if path.suffixes == [".md"]]
    text = "\n".join(path.read_text(encoding="utf-8") for path in english)
    letters = sorted({letter for letter in text if letter.isascii()})
    ids = torch.tensor([letters.index(letter) for letter in text if letter.isascii()])
    held_out = len(ids) // 10
    model = _trained(ids[held_out:], len(letters), seconds)
    lines = tuple(" ".join(map(str, row)) for row in _windows(ids[:held_out], LINES)[:, : WINDOW // 2].tolist())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pt"
        torch.save(dict(_renamed(model)), path)
        report = preview(path).report
        start = time.perf_counter()
        report = scored(report, lambda answers: load(path, answers=answers), Samples(lines))
    truth = {name: getattr(model.config, name) for name in STRUCTURE}
    return Found(report, truth, time.perf_counter() - start)


def _trained(ids: Tensor, size: int, seconds: float) -> Transformer:
    """A decoder alone as GPT-2 has it: learned positions, norms before, GELU, one table for input and output."""
    config = ModelConfig(
        n_encoder_layers=0, n_decoder_layers=3, d_model=64, n_heads=4, d_ff=256, max_len=WINDOW, dropout=0.0,
        src_vocab_size=size, tgt_vocab_size=size, shared_vocab=True, append_source_eos=False, positions="learned",
        activation="gelu_tanh", scale_embedding=False, tie_output=True, pad_id=None,
    )  # fmt: skip
    model = Transformer(config)
    learn = torch.optim.AdamW(model.parameters(), lr=3e-3)
    start = time.perf_counter()
    while (share := (time.perf_counter() - start) / seconds) < 1:
        for group in learn.param_groups:
            group["lr"] = 3e-3 * (1 - share)
        batch = _windows(ids, ROWS)
        logits = model(batch[:, :-1], batch[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        learn.zero_grad()
        loss.backward()
        learn.step()
    print(f"{len(ids):,} characters, {model.config.count_parameters():,} parameters, last loss {loss.item():.3f}")
    return model.requires_grad_(False).eval()


def _windows(ids: Tensor, n: int) -> Tensor:
    starts = torch.randint(len(ids) - WINDOW, (n,))
    return torch.stack([ids[i : i + WINDOW] for i in starts.tolist()])


def _renamed(model: Transformer) -> Iterator[tuple[str, Tensor]]:
    for ours, tensor in model.state_dict().items():
        name = ours
        for old, new in NAMES:
            name = name.replace(old, new)
        yield name, tensor.clone()
    yield "lm_head.weight", model.output_weight.clone()


if __name__ == "__main__":
    main()
