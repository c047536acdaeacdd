"""Questions about the KV cache: what is computed with it and without it, counted while the output is written again.

Source: Vaswani et al. (2017), section 3.1, for the mask that makes it possible; Shazeer, "Fast Transformer Decoding"
(2019), for what it costs to read it.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import Tensor

from glassformer.extensions.lessons.library.case import Answer, Case, NotHere, amount, numbered, only_rounding, worded
from glassformer.extensions.lessons.library.subjects.steps import written
from transformer.model.anatomy import anatomy
from transformer.model.cache import KVCache
from transformer.model.taps import Replacer, tap_of
from transformer.runs.decoding import Prefix

MOST_STEPS: Final = 64  # without a cache all tokens are computed anew at each step, and a question may not take long


@dataclass(frozen=True)
class Written:
    """The output written once more, and what was computed on the way."""

    own: tuple[int, ...]  # tokens whose keys the decoder's first layer computed, at each step
    source: tuple[int, ...]  # tokens of the source whose keys its first cross-attention computed, at each step
    log_probs: np.ndarray  # of every piece at each step [step, tgt_vocab]
    held: int  # numbers that the cache holds in the end


def write_again(case: Case, *, cached: bool) -> Written:
    """Write the run's output once more, and count; `cached` says whether keys and values are kept from step to step.

    Raises:
        NotHere: The model does not write, or wrote too much.
    """
    n_steps, config, trace = written(case, least=2), case.checkpoint.config, case.trace
    if n_steps > MOST_STEPS:
        raise NotHere("The output is too long to write twice for this question; try a shorter sentence.")
    if not anatomy(config).reads:
        raise NotHere(
            "This step also counts what is read from a source, but this model has no encoder; choose a checkpoint "
            "that has one."
        )
    counted: Counter[str] = Counter()
    tap = tap_of(Replacer({name: _counting(counted, word) for word, name in _SITES.items()}, causal=True))
    cache = KVCache(config.n_decoder_layers) if cached else None
    own, source, rows = [], [], []
    with torch.inference_mode():
        prefix = Prefix(case.checkpoint.model, torch.tensor([trace.src_ids]), cache=cache, tap=tap)
        for piece in trace.tgt_ids:
            counted.clear()
            rows.append(prefix.next_log_probs()[0].cpu().numpy().copy())
            own.append(counted["own"])
            source.append(counted["source"])
            prefix.append(torch.tensor([piece]))
    kept = () if cache is None else (*cache.self_attn, *cache.cross_attn)
    held = sum(one.numel() for part in kept for one in part.read())  # without the room that it keeps for more
    return Written(tuple(own), tuple(source), np.stack(rows), held)


def _both_ways(case: Case) -> tuple[Written, Written]:
    return write_again(case, cached=True), write_again(case, cached=False)


_SITES: Final = {"own": "decoder.0.self_attn.keys", "source": "decoder.0.cross_attn.keys"}


def _counting(counted: Counter[str], word: str) -> Callable[[Tensor], Tensor]:
    def look(keys: Tensor) -> Tensor:  # [batch, head, key, d_head]
        counted[word] += keys.size(2)
        return keys

    return look


def new_keys(case: Case) -> Answer:
    """Of how many tokens a step computes keys and values if those of the steps before are kept."""
    at = case.at("step")
    kept, afresh = _both_ways(case)
    right = "own" if kept.own[at] == 1 else "so_far"
    values = {"one": kept.own[at], "all": afresh.own[at]}
    return Answer(right=right, options=worded("own", "so_far", "everything"), values=values)


def tokens_without_cache(case: Case) -> Answer:
    """How many tokens go through the decoder, over all steps, if nothing is kept."""
    kept, afresh = _both_ways(case)
    n, total = len(afresh.own), sum(afresh.own)
    values = {"total": total, "kept": sum(kept.own), "times": total / sum(kept.own), "square": n * n, "n": n}
    return Answer(right=float(total), values=values, usual=float(n * n))


def written_with_cache(case: Case) -> Answer:
    """How far the cache moves what is computed."""
    kept, afresh = _both_ways(case)
    apart = float(np.abs(kept.log_probs - afresh.log_probs).max())
    same = only_rounding(apart / max(1.0, float(np.abs(afresh.log_probs).max())))
    right = "rounding" if same else "visible"
    return Answer(right=right, options=worded("rounding", "visible", "later"), values={"apart": amount(apart)})


def keys_of_the_source(case: Case) -> Answer:
    """How often cross-attention computes the keys of the source if they are kept."""
    kept, afresh = _both_ways(case)
    times, n = sum(bool(one) for one in kept.source), len(kept.source)
    right = "once" if times == 1 else "each"
    values = {"times": times, "without": sum(bool(one) for one in afresh.source), "n": n, "s": max(kept.source)}
    return Answer(right=right, options=worded("never", "once", "each"), values=values)


def size_of_the_cache(case: Case) -> Answer:
    """How many numbers the cache holds when the output is written."""
    config, n_source = case.checkpoint.config, len(case.trace.src_ids)
    kept = write_again(case, cached=True)
    tokens = len(kept.own) + n_source
    numbers = {
        "both": kept.held,
        "keys": kept.held // 2,
        "layer": kept.held // config.n_decoder_layers,
        "maps": config.n_decoder_layers * config.of("decoder").n_heads * len(kept.own) * tokens,
    }
    values = {"held": kept.held, "n": len(kept.own), "s": n_source, "a_token": kept.held // tokens}
    return Answer(right="both", options=numbered(numbers), values=values)
