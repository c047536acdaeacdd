"""The effect of zeroing each head of a model: many heads in one pass, against a pass for each head.

    python -m benchmarks.head_effects --runs 5
    python -m benchmarks.head_effects --runs 5 --threads 1  # like the app's one thread for the model

`zh-en` with a sentence of 12 pieces, and a decoder-only model of GPT-2's size (12 layers, d_model 768, 12 heads,
50,257 pieces; random weights, ids for text) that continues a prompt. One by one means: an intervention zeroes each
head, and a whole pass reads the source and the output, for the same four numbers per step. Both ways run in turns in
one process, and their numbers are compared.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

import transformer
from glassformer.extensions.what_if.head_effects import HeadEffects, head_effects, together
from glassformer.extensions.what_if.interventions import ZeroHead
from transformer.model.config import ModelConfig
from transformer.model.transformer import Transformer
from transformer.runs.apply_interventions import tap_for
from transformer.runs.query import Query
from transformer.runs.running import run
from transformer.runs.trace import Trace
from transformer.text.tokenizer import RawIds

ZH_EN = Path(__file__).resolve().parent.parent / "checkpoints" / "zh-en"
SENTENCE = "我买了一本书，但是还没看。"
PROMPT, N_NEW = 4, 12  # tokens of the model of GPT-2's size
Numbers = dict[tuple[str, int, int], tuple[np.ndarray, ...]]


def gpt2_size() -> Any:
    """A decoder alone in the shape of GPT-2, with random weights."""
    config = ModelConfig(
        n_encoder_layers=0, n_decoder_layers=12, d_model=768, n_heads=12, d_ff=3072, max_len=1024, dropout=0.0,
        src_vocab_size=50_257, tgt_vocab_size=50_257, shared_vocab=True, append_source_eos=False,
        positions="learned", activation="gelu_tanh", scale_embedding=False, tie_output=True, pad_id=None,
    )  # fmt: skip
    torch.manual_seed(0)
    model = Transformer(config).requires_grad_(False).eval()
    pieces = RawIds(config.src_vocab_size)
    return SimpleNamespace(
        name="gpt2", content_hash="", config=config, model=model, src_tokenizer=pieces, tgt_tokenizer=pieces
    )


def one_by_one(checkpoint: Any, trace: Trace) -> Numbers:
    """A whole pass for each head."""
    model, src_ids = checkpoint.model, torch.tensor([trace.src_ids])
    read_ids, ids = torch.tensor([trace.read_ids]), torch.tensor(trace.tgt_ids)
    rows = slice(trace.first_row, trace.first_row + trace.n_steps)

    def log_probs(tap: Any) -> torch.Tensor:
        memory = model.encode(src_ids, tap=tap) if model.anatomy.reads else None
        mask = model.source_mask(src_ids) if model.anatomy.reads else None
        return model.project(model.decode(read_ids, memory, mask, tap=tap)[:, rows], tap=tap)[0].log_softmax(-1)

    found: Numbers = {}
    with torch.inference_mode():
        before = log_probs(tap_for((), checkpoint))
        own = before.gather(1, ids[:, None])[:, 0]
        for attention in model.anatomy.attentions:
            for layer, head in np.ndindex(attention.n_layers, checkpoint.config.n_heads):
                after = log_probs(tap_for([ZeroHead(attention.kind, layer, head)], checkpoint))
                then = after.gather(1, ids[:, None])[:, 0]
                kl = ((before - after) * before.exp()).sum(-1)
                numbers = then - own, then.exp() - own.exp(), kl, after.argmax(-1)
                found[attention.kind, layer, head] = tuple(values.numpy() for values in numbers)
    return found


def compare(found: HeadEffects, expected: Numbers) -> float:
    """The largest difference of any log-probability, probability or KL."""
    worst = 0.0
    for (kind, layer, head), (*numbers, best) in expected.items():
        effect: Any = next(effect for name, effect in found.of.items() if name == kind)
        for name, values in zip(("log_prob", "probability", "kl"), numbers, strict=True):
            off = float(abs(getattr(effect, name)[layer, head] - values).max())
            assert np.isfinite(off), (kind, layer, head)
            worst = max(worst, off)
        assert (effect.best[layer, head] == best).all(), (kind, layer, head)
    return worst


def seconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def measure(checkpoint: Any, trace: Trace, runs: int) -> str:
    """A line of the table."""
    config = checkpoint.config
    groups = list(together(config, len(trace.src_ids), len(trace.read_ids)))
    worst = compare(head_effects(checkpoint, trace), one_by_one(checkpoint, trace))
    times = [
        (seconds(lambda: head_effects(checkpoint, trace)), seconds(lambda: one_by_one(checkpoint, trace)))
        for _ in range(runs)
    ]
    batched, single = (statistics.median(column) for column in zip(*times, strict=True))
    ratios = sorted(after / before for before, after in times)
    ranged = f"{ratios[0]:.1f} to {ratios[-1]:.1f}"
    return (
        f"| {checkpoint.name}, {trace.n_steps} steps | {sum(map(len, groups))} | {len(groups)} | {batched:.2f} s "
        f"| {single:.2f} s | **{single / batched:.1f}** ({ranged}) | {worst:.0e} |"
    )


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="turns of each way")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--models", nargs="+", choices=["zh-en", "gpt2"], default=["zh-en", "gpt2"])
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    print("| model | heads | passes | many a pass | one by one | ratio (range) | difference |")
    print("|---|---|---|---|---|---|---|")
    if "zh-en" in given.models:
        shipped = transformer.load(ZH_EN)
        print(measure(shipped, shipped.run(SENTENCE), given.runs), flush=True)
    if "gpt2" in given.models:
        large = gpt2_size()
        prompt = " ".join(str(7 * i + 100) for i in range(PROMPT))
        trace = run(large, Query(checkpoint="", source=prompt, max_new=N_NEW))
        print(measure(large, trace, given.runs), flush=True)


if __name__ == "__main__":
    main()
