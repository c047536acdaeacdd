"""How fast our trainer learns: real target tokens per second, against torch's own Transformer in a plain loop.

    python -m benchmarks.training check    # the two compute the same: parameters, loss, loss after a step
    python -m benchmarks.training speed    # ours against the plain loop and a beginner's, bf16 and fp32
    python -m benchmarks.training gain     # ours with one thing at a time switched back to torch's default
    python -m benchmarks.training limit    # what the matrix products alone would allow, at this machine's best rate

`speed` and `gain` print Markdown tables. Each side runs in its own process, in turns, in the same minutes, because a
busy machine changes. The plain loop gets the same batches as ours, tensor for tensor; the beginner's loop gets
sentences in random order, padded to the longest of a batch, with about as many target tokens per step. Padding does
not count as learned. Not measured: reading files, splitting into pieces, scoring after an epoch.

The pairs are made up (random ids, lengths like those of short everyday sentences) or read with `--pairs FILE`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median

import numpy as np
import torch
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.plain_loop import PlainTrainer, PlainTransformer, copy_parameters
from benchmarks.training_side import RATE, SEED, SIDES, Timing
from glassformer.extensions.training.library.data import Batches, Example, encode_pairs, make_batch
from glassformer.extensions.training.library.loop import Trainer
from glassformer.extensions.training.library.run import learn_vocabulary
from glassformer.extensions.training.library.settings import TrainSettings
from transformer.model.config import ModelConfig
from transformer.model.transformer import Transformer
from transformer.runs.sentence_files import read_pairs
from transformer.text.tokenizer import Tokenizer

VOCABULARY = 8_000
SPEED = ("ours", "plain", "sums", "beginner", "ours-fp32", "plain-fp32", "beginner-fp32")
ON_GPU = ("ours", "plain", "asked")
GAIN = ("ours", "dropout", "loss", "attention", "optimizer", "malloc", "shapes", "random", "ours-fp32")

CONFIG = ModelConfig(
    n_encoder_layers=3,
    n_decoder_layers=3,
    d_model=256,
    n_heads=4,
    d_ff=1024,
    src_vocab_size=VOCABULARY,
    tgt_vocab_size=VOCABULARY,
    max_len=64,
    dropout=0.1,
)


def made_up_examples(count: int) -> list[Example]:
    """Pairs of random ids: about 10 pieces a side, some 40, both sides alike in length; common pieces are common."""
    rng = np.random.default_rng(SEED)
    tgt_lengths = np.clip(rng.lognormal(np.log(9.0), 0.45, count).round(), 1, 40).astype(int)
    src_lengths = np.clip((tgt_lengths * rng.lognormal(0.0, 0.2, count)).round(), 1, 40).astype(int)
    common = 1.0 / (np.arange(VOCABULARY - 4) + 10.0)  # Zipf's law, the ranks shifted (Mandelbrot)
    drawn = rng.choice(np.arange(4, VOCABULARY), int(src_lengths.sum() + tgt_lengths.sum()), p=common / common.sum())
    ends = np.cumsum(np.stack((src_lengths, tgt_lengths), axis=1).ravel())
    sides = [(*map(int, part), CONFIG.eos_id) for part in np.split(drawn, ends[:-1])]
    return [Example(src, tgt) for src, tgt in zip(sides[::2], sides[1::2], strict=True)]


def examples_of(pairs_file: Path | None, count: int) -> list[Example]:
    """What to learn from: made up, or pairs of a file with vocabularies learned from it."""
    if pairs_file is None:
        return made_up_examples(count)
    pairs = read_pairs(pairs_file)[:count]
    src, tgt = (Tokenizer(learn_vocabulary(texts, size=VOCABULARY)) for texts in zip(*pairs, strict=True))
    return encode_pairs(pairs, src, tgt, CONFIG)


def report_check(examples: Sequence[Example], batch_tokens: int) -> None:
    """Show that both sides compute the same from the same parameters, without dropout, in float32.

    Raises:
        SystemExit: They do not.
    """
    config = ModelConfig(**{**asdict(CONFIG), "dropout": 0.0})
    torch.manual_seed(SEED)
    model, peer = Transformer(config), PlainTransformer(config)
    copy_parameters(model, peer)
    batches = Batches(lambda _: examples, batch_tokens=batch_tokens, seed=SEED)
    ours = Trainer(model, batches, TrainSettings(precision="fp32"))
    plain = PlainTrainer(peer, bf16=False)
    counts = [sum(p.numel() for p in side.parameters()) for side in (model, peer)]
    print(f"parameters: ours {counts[0]:,}, plain {counts[1]:,}")
    agree = counts[0] == counts[1]
    batch = make_batch(batches.epoch(0)[0], config)
    for when in ("before", "after"):
        losses = float(ours.learn([batch], [1.0], RATE)), plain.step(batch, RATE)
        difference = abs(losses[0] - losses[1])
        print(f"loss {when} a step: ours {losses[0]:.6f}, plain {losses[1]:.6f}, difference {difference:.1e}")
        agree = agree and difference < 1e-4
    if not agree:
        raise SystemExit("the two sides do not compute the same: their speeds must not be compared")


def report_limit(examples: Sequence[Example], *, batch_tokens: int, steps: int) -> None:
    """Print the tokens a second that a trainer would reach that does nothing but its matrix products, in bfloat16.

    The products of our own steps are counted; their rate is the best of one layer's product, many times.
    """
    batches = Batches(lambda _: examples, batch_tokens=batch_tokens, seed=SEED)
    groups = batches.epoch(0)[:steps]
    trainer = Trainer(Transformer(CONFIG), batches, TrainSettings(batch_tokens=batch_tokens))
    with FlopCounterMode(display=False) as counter:
        for group in groups:
            trainer.learn([make_batch(group, CONFIG)], [1.0], RATE)
    flops, tokens = counter.get_total_flops(), sum(len(e.tgt) for group in groups for e in group)
    rate = best_rate()
    print(f"products of a step: {flops / len(groups) / 1e9:.0f} GFLOP; this machine's best: {rate / 1e9:.0f} GFLOP/s")
    print(f"products alone: {flops / len(groups) / rate:.2f} s a step, {tokens * rate / flops:,.0f} target tokens/s")


def best_rate(seconds: float = 3.0) -> float:
    """Operations a second of the feed-forward layer's product in bfloat16, the fastest of many."""
    rows, wide, narrow = 3_072, CONFIG.d_ff, CONFIG.d_model
    x, weight = torch.randn(rows, narrow, dtype=torch.bfloat16), torch.randn(wide, narrow, dtype=torch.bfloat16)
    fastest, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        started = time.perf_counter()
        functional.linear(x, weight)
        fastest = min(fastest, time.perf_counter() - started)
    return 2 * rows * wide * narrow / fastest


def timings(sides: Sequence[str], work: Path, turns: int) -> dict[str, list[Timing]]:
    """Run every side once a turn, each in a process of its own."""
    found: dict[str, list[Timing]] = {side: [] for side in sides}
    for turn in range(turns):
        # Every other turn goes backwards, so that no side always follows the same one.
        for side in sides if turn % 2 == 0 else reversed(sides):
            command = [sys.executable, "-m", "benchmarks.training_side", side, str(work)]
            said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            found[side].append(Timing(**json.loads(said)))
            print(f"turn {turn + 1} of {turns}: {side} {found[side][-1].seconds:.1f} s", file=sys.stderr, flush=True)
    return found


def rates(runs: Sequence[Timing], clock: str) -> list[float]:
    """Real target tokens a second of each run, by one of the clocks of `Timing`."""
    return [run.tokens / getattr(run, clock) for run in runs]


def print_table(found: dict[str, list[Timing]], *, clock: str, base: str, head: str) -> None:
    """Print medians and ranges of each side, and how often the first of them is as fast."""
    print(f"\n| | target tokens/s | range of turns | first pass | padding | parameters | {head} |")
    print("|---|---|---|---|---|---|---|")
    for side, runs in found.items():
        values, first = rates(runs, clock), rates(runs, "first_seconds")
        ratio = median(rates(found[base], clock)) / median(values)
        padding = 1 - runs[0].tokens / runs[0].padded
        print(
            f"| {SIDES[side].title} | {median(values):,.0f} | {min(values):,.0f}-{max(values):,.0f} "
            f"| {median(first):,.0f} | {padding:.0%} | {runs[0].parameters:,} | {ratio:.2f} |"
        )


def report(what: str, work: Path, *, turns: int, clock: str) -> None:
    """Print the table of one kind and its ratios."""
    found = timings(SPEED if what == "speed" else GAIN, work, turns)
    if what == "gain":
        print_table(found, clock=clock, base="ours", head="ours is faster by")
        return
    print_table(found, clock=clock, base="ours", head="ours, bf16, is faster by")
    print()
    for precision in ("", "-fp32"):
        ours = median(rates(found[f"ours{precision}"], clock))
        plain, beginner = (median(rates(found[f"{peer}{precision}"], clock)) for peer in ("plain", "beginner"))
        name = precision[1:] or "bf16"
        print(f"{name}: ours learns {ours / plain:.2f} times as fast as the plain loop on identical batches,")
        print(f"      {ours / beginner:.2f} times as fast as a beginner's loop")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one of the reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["check", "speed", "gain", "limit"])
    parser.add_argument("--pairs", type=Path, help="source TAB target, one pair per line (default: made up)")
    parser.add_argument("--examples", type=int, default=40_000, help="most pairs to make up or to read")
    parser.add_argument("--batch-tokens", type=int, default=3_072, help="target tokens per step, padding included")
    parser.add_argument("--turns", type=int, default=3, help="runs of each side")
    parser.add_argument("--steps", type=int, default=40, help="steps of each of the two passes of a run")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="for `speed`, in bf16")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--cpu-time", action="store_true", help="by the CPU's clock: for a machine with other work")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    examples = examples_of(options.pairs, options.examples)
    if options.what == "check":
        report_check(examples, options.batch_tokens)
        return
    if options.what == "limit":
        report_limit(examples, batch_tokens=options.batch_tokens, steps=options.steps)
        return
    lengths = [len(e.tgt) for e in examples]
    print(
        f"{os.cpu_count()} cores, {options.threads} threads, load {os.getloadavg()[0]:.1f}, torch {torch.__version__}"
    )
    print(f"{len(examples):,} pairs, {np.mean(lengths):.1f} target tokens each, at most {max(lengths)}")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "work.json"
        content = {
            "config": asdict(CONFIG),
            "examples": [(e.src, e.tgt) for e in examples],
            "batch_tokens": options.batch_tokens,
            "steps": options.steps,
            "threads": options.threads,
            "device": options.device,
        }
        work.write_text(json.dumps(content), encoding="ascii")
        clock = "cpu_seconds" if options.cpu_time else "seconds"
        if options.device == "cuda":
            print(torch.cuda.get_device_name())
            print_table(timings(ON_GPU, work, options.turns), clock=clock, base="ours", head="ours is faster by")
        else:
            report(options.what, work, turns=options.turns, clock=clock)


if __name__ == "__main__":
    main()
