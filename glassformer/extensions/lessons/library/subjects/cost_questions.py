"""Computed lesson answers on cost: parameters, work by length, convolutions, ablated parts, key-value cache.

Picks: which length a lesson about cost looks at, and which parts are taken away.

Source: Vaswani et al. (2017), section 4 and table 1, for the orders n² d and n d².
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from glassformer.extensions.lessons.library.lesson import (
    Answer,
    Case,
    Refusal,
    amount,
    clear,
    numbered,
    only_rounding,
    refuse_if,
)
from glassformer.extensions.what_if.interventions import NoFeedForward, NoPositions, NoResidual, ScoreScale
from transformer.analysis import costs
from transformer.model.anatomy import anatomy
from transformer.model.cache import KVCache
from transformer.model.taps import Replacer, tap_of
from transformer.runs.decoding import Prefix
from transformer.runs.interventions import Intervention
from transformer.runs.trace import Trace

MOST_PIECES: Final = 8
"""Each part that is taken away is another run, and all of them shall not take longer than half a second."""


def sentence_lengths(case: Case) -> dict[str, Any]:
    """How many tokens each stack reads."""
    parts = anatomy(case.checkpoint.config)
    refuse_if(not (parts.reads and parts.writes), Refusal.NEEDS_BOTH)
    return {"n_source": len(case.trace.src_ids), "n_target": len(case.trace.read_ids)}


def parts_to_take(case: Case) -> dict[str, Any]:
    """How many pieces of the output are looked at while parts are taken away."""
    parts, config = anatomy(case.checkpoint.config), case.checkpoint.config
    refuse_if(not (parts.reads and parts.writes), Refusal.NEEDS_BOTH)
    refuse_if(config.placing.adds != "table", Refusal.NO_TABLE)
    return {"pieces": min(case.written(least=2), MOST_PIECES)}


PARTS: Final[dict[str, Intervention]] = {
    "positions": NoPositions(),
    "scale": ScoreScale(),
    "feed_forward": NoFeedForward(),
    "residual": NoResidual(),
}
"""What is taken away, one at a time."""

TWICE: Final = 2.5
FOUR_TIMES: Final = 3.5
CLEAR: Final = 0.1  # nats


def largest_part(case: Case) -> Answer:
    """Which kind of part has most parameters."""
    held = {part: one.parameters for part, one in costs.holdings(case.checkpoint.model).items()}
    total = sum(held.values())
    groups = costs.grouped(held)
    shares = {
        "attention": groups["projections"] / total,
        "feed_forward": groups["ffn"] / total,
        "embeddings": sum(held[part] for part in ("source_embedding", "target_embedding")) / total,
        "norms": held["norms"] / total,
    }
    right = max(shares, key=lambda word: shares[word])
    return Answer(right, {**shares, "n": total})


def grows_with_length(case: Case) -> Answer:
    """Which part costs more per token in a sentence twice as long."""
    n = max(int(case.picked["n_source"]), int(case.picked["n_target"]))
    now, then = (_by_group(case, n * times) for times in (1, 2))
    per_token = {word: then[word] / (2 * now[word]) for word in now if now[word]}
    growing = [word for word, times in per_token.items() if times > 1]
    right = growing[0] if len(growing) == 1 else "all"
    return Answer(right, {"n": n, "twice": 2 * n, "times": per_token["maps"]})


def _by_group(case: Case, n: int) -> dict[str, int]:
    found = costs.grouped(costs.multiply_adds(case.checkpoint.config, n_source=n, n_target=n))
    return {word: found[word] for word in ("projections", "maps", "ffn", "output")}


def where_it_overtakes(case: Case) -> Answer:
    """From which length on the n² part is more work than all the rest."""
    config = case.checkpoint.config
    n = costs.overtakes(config).n
    numbers = {
        "all": n,
        "projections": costs.overtakes(config, parts=costs.PROJECTIONS).n,
        "sentence": max(int(case.picked["n_source"]), int(case.picked["n_target"])),
        "width": config.d_model,
    }
    counts = _by_group(case, config.max_len)
    values = {"n": n, "longest": config.max_len, "share": counts["maps"] / sum(counts.values())}
    variant = "beyond" if n > config.max_len else "within"
    return Answer("all", values, options=numbered(numbers), variant=variant)


def length_doubled(case: Case) -> Answer:
    """How many times the work a sentence twice as long takes."""
    source, target = int(case.picked["n_source"]), int(case.picked["n_target"])
    config = case.checkpoint.config
    counts = costs.grouped(costs.multiply_adds(config, n_source=source, n_target=target))
    double = sum(costs.multiply_adds(config, n_source=2 * source, n_target=2 * target).values())
    times = double / sum(counts.values())
    right = "two" if times < TWICE else ("four" if times > FOUR_TIMES else "three")
    return Answer(right, {"times": times, "share": counts["maps"] / sum(counts.values())})


def layers_of_convolution(case: Case) -> Answer:
    """How many layers of convolution of width 3 take the first token to the last, where attention takes one."""
    n = int(case.picked["n_source"])
    paths = {name: path for name, (path, *_) in costs.kinds_of_layers(n, 1, side=1).items()}
    numbers = {"all": paths["convolution"], "attention": paths["attention"], "dilated": paths["dilated"], "tokens": n}
    return Answer("all", {"n_layers": paths["convolution"], "dilated": paths["dilated"]}, options=numbered(numbers))


def parts_that_can_go(case: Case) -> Answer:
    """How many of four parts can be taken away, one at a time, and the model still writes the same."""
    own, found = _without(case, PARTS)
    best = own.log_probs.argmax(-1)
    refuse_if(not all(clear(trace.log_probs).all() for trace in (own, *found.values())), Refusal.NEAR)
    kept = {word: bool((trace.log_probs.argmax(-1) == best).all()) for word, trace in found.items()}
    k = sum(kept.values())
    values = {"k": k, "change": str(PARTS["residual"]), **_told(own, found)}
    variant = "all" if k == len(PARTS) else ("some" if k else "none")
    options = numbered({str(n): n for n in range(len(PARTS) + 1)})
    return Answer(str(k), values, options=options, variant=variant)


def most_missed(case: Case) -> Answer:
    """Without which of three parts the model finds its own output least probable."""
    own, found = _without(case, [word for word in PARTS if word != "residual"])
    order = sorted(found, key=lambda word: found[word].log_prob)
    worst, second = (found[word].log_prob for word in order[:2])
    refuse_if(second - worst < CLEAR, Refusal.NO_WINNER)
    return Answer(order[0], {**_told(own, found), "change": str(PARTS[order[0]])})


def _without(case: Case, parts: Iterable[str]) -> tuple[Trace, dict[str, Trace]]:
    """The run, and those without a part, up to so many pieces and each time after the pieces of the run itself."""
    forced = case.trace.tgt_ids[: int(case.picked["pieces"])]
    own = case.another(forced=forced, max_new=len(forced))
    found = {word: case.another(forced=forced, max_new=len(forced), interventions=(PARTS[word],)) for word in parts}
    refuse_if(not all(np.isfinite(trace.log_prob) for trace in found.values()), Refusal.NOT_FINITE)
    return own, found


def _told(own: Trace, found: dict[str, Trace]) -> dict[str, float]:
    return {"own": own.log_prob, **{f"no_{word}": trace.log_prob for word, trace in found.items()}}


MOST_STEPS: Final = 64  # without a cache all tokens are computed anew at each step, and a question may not take long


@dataclass(frozen=True)
class WrittenOutput:
    """The output written once more, and what was computed on the way."""

    own: tuple[int, ...]  # tokens whose keys the decoder's first layer computed, at each step
    source: tuple[int, ...]  # tokens of the source whose keys its first cross-attention computed, at each step
    log_probs: np.ndarray  # of every piece at each step [step, tgt_vocab]
    held: int  # numbers that the cache holds in the end


def write_again(case: Case, *, cached: bool) -> WrittenOutput:
    """Write the run's output once more, and count; `cached` says whether keys and values are kept from step to step.

    Raises:
        QuestionNotApplicable: The model does not write, or wrote too much.
    """
    n_steps, config, trace = case.written(least=2), case.checkpoint.config, case.trace
    refuse_if(n_steps > MOST_STEPS, Refusal.TOO_LONG)
    refuse_if(not anatomy(config).reads, Refusal.NEEDS_BOTH)
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
    return WrittenOutput(tuple(own), tuple(source), np.stack(rows), held)


def _both_ways(case: Case) -> tuple[WrittenOutput, WrittenOutput]:
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
    return Answer(right, {"one": kept.own[at], "all": afresh.own[at]})


def tokens_without_cache(case: Case) -> Answer:
    """How many tokens go through the decoder, over all steps, if nothing is kept."""
    kept, afresh = _both_ways(case)
    n, total = len(afresh.own), sum(afresh.own)
    values = {"total": total, "kept": sum(kept.own), "times": total / sum(kept.own), "square": n * n, "n": n}
    return Answer(float(total), values, usual=float(n * n))


def written_with_cache(case: Case) -> Answer:
    """How far the cache moves what is computed."""
    kept, afresh = _both_ways(case)
    apart = float(np.abs(kept.log_probs - afresh.log_probs).max())
    same = only_rounding(apart / max(1.0, float(np.abs(afresh.log_probs).max())))
    right = "rounding" if same else "visible"
    return Answer(right, {"apart": amount(apart)})


def keys_of_the_source(case: Case) -> Answer:
    """How often cross-attention computes the keys of the source if they are kept."""
    kept, afresh = _both_ways(case)
    times, n = sum(bool(one) for one in kept.source), len(kept.source)
    right = "once" if times == 1 else "each"
    values = {"times": times, "without": sum(bool(one) for one in afresh.source), "n": n, "s": max(kept.source)}
    return Answer(right, values)


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
    return Answer("both", values, options=numbered(numbers))
