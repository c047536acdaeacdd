"""One side of the training benchmark: makes a model, learns from the same batches twice, and reports the time.

Each side runs in its own process (`benchmarks.training` starts it), so its memory allocator and torch caches do not
affect the next. In bfloat16 torch builds a kernel for each new shape: the first pass over the batches pays for that,
the second meets only known shapes, like the later epochs of a training. Making the tensors of a batch is part of the
time, with the same function on every side.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.plain_loop import PlainTrainer, PlainTransformer, drop_only_sums
from glassformer.extensions.training.library import data, distributed, loop
from glassformer.extensions.training.library.data import Batch, Batches, Example, make_batch
from glassformer.extensions.training.library.loop import Trainer
from glassformer.extensions.training.library.settings import TrainSettings
from transformer.checkpoint.free_memory import keep_freed_memory
from transformer.model.config import ModelConfig
from transformer.model.module import Dropout
from transformer.model.taps import NO_TAP, Tap
from transformer.model.transformer import Transformer

RATE = 5e-4
SEED = 1

Step = Callable[[Batch, float], float | Tensor]  # learn from a batch at a rate; the loss before that


@dataclass(frozen=True, kw_only=True)
class Work:
    """What every side is given: sizes, and what to learn from.

    Attributes:
        config: Of our model.
        examples: Pairs of ids.
        batch_tokens: Target tokens a step, padding included.
        steps: Steps of one pass.
        device: Where both sides learn.
    """

    config: ModelConfig
    examples: Sequence[Example]
    batch_tokens: int
    steps: int
    device: torch.device


@dataclass(frozen=True, kw_only=True)
class Side:
    """What is timed.

    Attributes:
        title: For the table.
        ours: Our trainer, or the plain loop.
        bf16: Autocast to bfloat16.
        random: Batches of sentences in random order, as a beginner makes them.
        played: On a GPU, play recorded steps back.
        keep_memory: Let the allocator keep what is freed, as our trainer does.
        change: Puts something of torch's own in the place of ours, or changes the peer.
    """

    title: str
    ours: bool = True
    bf16: bool = True
    random: bool = False
    played: bool = True
    keep_memory: bool = True
    change: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Timing:
    """What a side took: real target tokens and seconds of one pass.

    `first_seconds` is the first pass, `cpu_seconds` those of all threads in the second.
    """

    tokens: int
    padded: int
    first_seconds: float
    seconds: float
    cpu_seconds: float
    loss: float
    parameters: int


class RandomBatches(Batches):
    """Batches as a beginner makes them: so many sentences in random order.

    The number of sentences is the one that gives about `batch_tokens` target tokens a batch, padding included.
    """

    def epoch(self, number: int) -> list[list[Example]]:
        """The groups of epoch `number`."""
        rng = np.random.default_rng((self._seed, number))
        examples = self._draw(number)
        shuffled = [examples[i] for i in rng.permutation(len(examples))]
        size = fitting_size([len(e.tgt) for e in shuffled], self._batch_tokens)
        return [shuffled[i : i + size] for i in range(0, len(shuffled) - size + 1, size)]


def fitting_size(lengths: Sequence[int], batch_tokens: int) -> int:
    """The greatest number of rows whose batches hold on average at most `batch_tokens`, padded to their longest."""

    def padded(size: int) -> float:
        groups = [lengths[i : i + size] for i in range(0, len(lengths) - size + 1, size)]
        return size * sum(map(max, groups)) / len(groups)

    low, high = 1, min(batch_tokens, len(lengths)) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if padded(middle) <= batch_tokens else (low, middle)
    return low


def _torch_dropout() -> None:
    def forward(self: Dropout, x: Tensor) -> Tensor:
        return F.dropout(x, self.level / 256, self.training)

    Dropout.forward = forward  # type: ignore[method-assign]


def _whole_loss() -> None:
    def target_loss(model: Transformer, batch: Batch, *, smoothing: float, tap: Tap = NO_TAP) -> Tensor:
        logits = model(batch.src, batch.tgt_in, tap=tap).float().flatten(0, 1)  # [B T, V]
        pad_id = model.config.fill_id
        return F.cross_entropy(logits, batch.tgt_out.flatten(), ignore_index=pad_id, label_smoothing=smoothing)

    distributed.target_loss = target_loss  # type: ignore[attr-defined]


def _torch_attention() -> None:
    loop.plain_attention = nullcontext  # type: ignore


def _plain_optimizer() -> None:
    fused = loop.make_optimizer  # type: ignore[attr-defined]

    def make_optimizer(parameters: Iterable[torch.nn.Parameter], settings: TrainSettings) -> torch.optim.AdamW:
        groups = [{**group, "fused": False} for group in fused(parameters, settings).param_groups]
        return torch.optim.AdamW(groups)

    loop.make_optimizer = make_optimizer  # type: ignore[attr-defined]


def _whole_shapes() -> None:
    data.LENGTH_STEP = 1


def _drop_only_sums() -> None:
    init = PlainTransformer.__init__

    def made(self: PlainTransformer, config: ModelConfig) -> None:
        init(self, config)
        drop_only_sums(self)

    PlainTransformer.__init__ = made  # type: ignore[method-assign]


SIDES: dict[str, Side] = {
    "ours": Side(title="ours, bf16"),
    "plain": Side(title="plain loop, bf16", ours=False),
    "sums": Side(title="plain loop, bf16, dropout only where ours has it", ours=False, change=_drop_only_sums),
    "beginner": Side(title="beginner's loop, bf16", ours=False, random=True, change=_whole_shapes),
    "ours-fp32": Side(title="ours, fp32", bf16=False),
    "plain-fp32": Side(title="plain loop, fp32", ours=False, bf16=False),
    "beginner-fp32": Side(title="beginner's loop, fp32", ours=False, bf16=False, random=True, change=_whole_shapes),
    "asked": Side(title="ours, bf16, every kernel asked for", played=False),
    "dropout": Side(title="torch's dropout", change=_torch_dropout),
    "loss": Side(title="cross-entropy on whole float32 logits", change=_whole_loss),
    "attention": Side(title="torch's choice of attention kernel", change=_torch_attention),
    "optimizer": Side(title="AdamW not fused", change=_plain_optimizer),
    "malloc": Side(title="default malloc", keep_memory=False),
    "shapes": Side(title="lengths not rounded", change=_whole_shapes),
    "random": Side(title="batches in random order", random=True),
}


def run(side: Side, work: Work) -> Timing:
    """Train one side on its batches, twice."""
    side.change()
    torch.manual_seed(SEED)
    kind = RandomBatches if side.random else Batches
    batches = kind(lambda _: work.examples, batch_tokens=work.batch_tokens, seed=SEED)
    groups = batches.epoch(0)[: work.steps]
    step, model = _ours(side, work, batches) if side.ours else _plain(side, work)
    first, _, _ = _pass(step, groups, work)
    if work.device.type == "cuda":
        _pass(step, groups, work)  # a shape that is met for the second time is recorded
    seconds, cpu, loss = _pass(step, groups, work)
    return Timing(
        tokens=sum(len(e.tgt) for group in groups for e in group),
        padded=sum(make_batch(group, work.config).tgt_out.numel() for group in groups),
        first_seconds=first,
        seconds=seconds,
        cpu_seconds=cpu,
        loss=loss,
        parameters=sum(p.numel() for p in model.parameters()),
    )


def _ours(side: Side, work: Work, batches: Batches) -> tuple[Step, torch.nn.Module]:
    if side.keep_memory:
        keep_freed_memory()
    model = Transformer(work.config).to(work.device)
    settings = TrainSettings(batch_tokens=work.batch_tokens, precision="bf16" if side.bf16 else "fp32")
    trainer = Trainer(model, batches, settings)
    if not side.played:
        trainer.played = None

    def step(batch: Batch, rate: float) -> Tensor:
        trainer.place = replace(trainer.place, steps=trainer.place.steps + 1)  # so that dropout draws anew
        return trainer.learn([batch], [1.0], rate)

    return step, model


def _plain(side: Side, work: Work) -> tuple[Step, torch.nn.Module]:
    model = PlainTransformer(work.config).to(work.device)
    trainer = PlainTrainer(model, bf16=side.bf16)
    return lambda batch, rate: trainer.step(batch.to(work.device), rate), model


def _pass(step: Step, groups: Sequence[Sequence[Example]], work: Work) -> tuple[float, float, float]:
    """Seconds, CPU seconds and last loss of one pass over the groups."""
    started, cpu, loss = time.perf_counter(), time.process_time(), torch.zeros(())
    for group in groups:
        loss = torch.as_tensor(step(make_batch(group, work.config), RATE))
    last = float(loss)  # waits for a GPU
    return time.perf_counter() - started, time.process_time() - cpu, last


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one side and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("side", choices=list(SIDES))
    parser.add_argument("work", type=Path, help="JSON: config, examples, batch_tokens, steps, threads")
    options = parser.parse_args(arguments)
    given = json.loads(options.work.read_text(encoding="ascii"))
    torch.set_num_threads(given["threads"])
    work = Work(
        config=ModelConfig(**given["config"]),
        examples=[Example(tuple(src), tuple(tgt)) for src, tgt in given["examples"]],
        batch_tokens=given["batch_tokens"],
        steps=given["steps"],
        device=torch.device(given["device"]),
    )
    print(json.dumps(asdict(run(SIDES[options.side], work))))


if __name__ == "__main__":
    main()
