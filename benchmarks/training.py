"""Training against torch's own Transformer in a plain loop: real target tokens, in bfloat16 and float32.

Both learn from the same batches, tensor for tensor: pairs of random ids as long as short everyday sentences, about
3,072 target tokens a step; padding does not count. d_model 256, 3+3 layers, 8,000 pieces. With the same parameters and
without dropout their losses are the same before and after a step (tests/benchmarks/test_plain_loop.py). Each side has
its own process; its first pass over the batches, in which torch makes a kernel for each new shape, does not count.
`--device cuda` trains on a GPU, where ours plays recorded steps back. Not measured: reading files, splitting, scores.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import torch

from benchmarks.harness import Comparison, Settings, turns, worker
from benchmarks.plain_loop import PlainTrainer, PlainTransformer
from glassformer.extensions.training.library.data import Batches, Example, make_batch
from glassformer.extensions.training.library.loop import Trainer
from glassformer.extensions.training.library.settings import TrainSettings
from transformer.checkpoint.free_memory import keep_freed_memory
from transformer.model.config import ModelConfig
from transformer.model.transformer import Transformer

SEED, RATE, SIZE, N_EXAMPLES, BATCH_TOKENS = 1, 5e-4, 8_000, 40_000, 3_072
CONFIG = ModelConfig(
    n_encoder_layers=3, n_decoder_layers=3, d_model=256, n_heads=4, d_ff=1024, src_vocab_size=SIZE,
    tgt_vocab_size=SIZE, max_len=64, dropout=0.1,
)  # fmt: skip
AIMS = {"bf16": "2.0 times as fast", "fp32": ""}


def measure(settings: Settings) -> Iterator[Comparison]:
    """The table."""
    given = {"steps": settings.n(60 if settings.device == "cuda" else 8, 1), "device": settings.device}
    for precision, aim in AIMS.items():
        with ExitStack() as open_ones:
            workers = {
                name: open_ones.enter_context(worker("training", f"{name} {precision}", given))
                for name in ("ours", "plain")
            }
            sides = {name: lambda ask=ask: ask(None).said for name, ask in workers.items()}
            # On a GPU a shape is recorded when it is met for the second time.
            found = turns(sides, settings.n_turns(3), warm_up=2 if settings.device == "cuda" else 1)
        yield Comparison(
            what=f"training in {precision}, target tokens", ours=found["ours"], peer=found["plain"],
            peer_name="a plain loop around torch's Transformer", unit="tokens/s", rate=True, more=True, aim=aim,
            headline=precision == "bf16",
        )  # fmt: skip


@cache
def _examples() -> list[Example]:
    """Pairs of random ids: about 10 pieces a side, some 40, both sides alike in length; common pieces are common."""
    rng = np.random.default_rng(SEED)
    tgt_lengths = np.clip(rng.lognormal(np.log(9.0), 0.45, N_EXAMPLES).round(), 1, 40).astype(int)
    src_lengths = np.clip((tgt_lengths * rng.lognormal(0.0, 0.2, N_EXAMPLES)).round(), 1, 40).astype(int)
    common = 1.0 / (np.arange(SIZE - 4) + 10.0)  # Zipf's law, the ranks shifted (Mandelbrot)
    drawn = rng.choice(np.arange(4, SIZE), int(src_lengths.sum() + tgt_lengths.sum()), p=common / common.sum())
    ends = np.cumsum(np.stack((src_lengths, tgt_lengths), axis=1).ravel())
    sides = [(*map(int, part), CONFIG.eos_id) for part in np.split(drawn, ends[:-1])]
    return [Example(src, tgt) for src, tgt in zip(sides[::2], sides[1::2], strict=True)]


def batches() -> Batches:
    return Batches(lambda _: _examples(), batch_tokens=BATCH_TOKENS, seed=SEED)


def side(name: str, given: dict[str, Any]) -> Callable[[object], float]:
    """One side: real target tokens of a pass over its batches, with making their tensors."""
    program, precision = name.split()
    torch.set_num_threads(os.cpu_count() or 1)
    torch.manual_seed(SEED)
    groups = batches().epoch(0)[: given["steps"]]
    n_tokens, device = sum(len(one.tgt) for group in groups for one in group), torch.device(given["device"])
    learn = {"ours": _ours, "plain": _plain}[program](device, precision)

    def answer(_: object) -> float:
        began, loss = time.perf_counter(), torch.zeros(())
        for group in groups:
            loss = torch.as_tensor(learn(make_batch(group, CONFIG)))
        float(loss)  # waits for a GPU
        return n_tokens / (time.perf_counter() - began)

    return answer


def _ours(device: torch.device, precision: Any) -> Callable[[Any], torch.Tensor]:
    keep_freed_memory()  # as the command that trains does
    settings = TrainSettings(batch_tokens=BATCH_TOKENS, precision=precision)
    trainer = Trainer(Transformer(CONFIG).to(device), batches(), settings)

    def learn(batch: Any) -> torch.Tensor:
        trainer.place = replace(trainer.place, steps=trainer.place.steps + 1)  # so that dropout draws anew
        return trainer.learn([batch], [1.0], RATE)

    return learn


def _plain(device: torch.device, precision: Any) -> Callable[[Any], float]:
    trainer = PlainTrainer(PlainTransformer(CONFIG).to(device), bf16=precision == "bf16")
    return lambda batch: trainer.step(batch.to(device), RATE)
