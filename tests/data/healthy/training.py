"""How one model is trained, and what all of them share."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from tests.data.healthy import tasks

HERE = Path(__file__).parent
BATCH, RATE, WARMUP = 64, 3e-3, 100
WIDTH, HIDDEN, HEADS = 32, 64, 4

Rows = list[list[int]]
Split = Callable[[str], list[int]]
Losses = Callable[[nn.Module, list[tasks.Pair]], Tensor]


@dataclass(frozen=True)
class Recipe:
    """How one model is made.

    Attributes:
        begin: Makes the untrained model.
        loss: Of a batch of pairs.
        save: Writes the trained model.
        steps: How many batches.
    """

    begin: Callable[[], nn.Module]
    loss: Losses
    save: Callable[[nn.Module], None]
    steps: int


def padded(rows: Rows, fill: int) -> Tensor:
    """Rows of ids, the short ones filled at their end."""
    longest = max(map(len, rows))
    return torch.tensor([row + [fill] * (longest - len(row)) for row in rows])


def train(name: str, recipe: Recipe) -> nn.Module:
    """Train with Adam: a warm-up, then a rate that falls to 0."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, rows = recipe.begin().train(), tasks.pairs(name, seed=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE, betas=(0.9, 0.98))
    rate = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda n: min((n + 1) / WARMUP, 1.0, (recipe.steps - n) / (recipe.steps - WARMUP))
    )
    begun = time.perf_counter()
    for step in range(recipe.steps):
        loss = recipe.loss(model, [next(rows) for _ in range(BATCH)])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        rate.step()
        if step % 300 == 0 or step == recipe.steps - 1:
            print(f"{name}: step {step}, loss {loss.item():.4f}, {time.perf_counter() - begun:.0f} s", flush=True)
    return model.eval()


def write(name: str, files: dict[str, bytes]) -> None:
    """Write files beside the weights."""
    (HERE / name).mkdir(exist_ok=True)
    for file, content in files.items():
        (HERE / name / file).write_bytes(content)
