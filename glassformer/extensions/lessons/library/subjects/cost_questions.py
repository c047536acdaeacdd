"""Questions about what a model costs, and what it needs: parameters, multiply-adds, and parts that are taken away.

Picks: which length a lesson about cost looks at, and which parts are taken away.

Source: Vaswani et al. (2017), section 4 and table 1, for the orders n² d and n d².
"""

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from glassformer.extensions.lessons.library.case import NEAR, Answer, Case, NotHere, clear, numbered, worded
from glassformer.extensions.lessons.library.subjects.steps import written
from glassformer.extensions.what_if.interventions import NoFeedForward, NoPositions, NoResidual, ScoreScale
from transformer.analysis import costs
from transformer.model.anatomy import anatomy
from transformer.runs.interventions import Intervention
from transformer.runs.trace import Trace

MOST_PIECES: Final = 8
"""Each part that is taken away is another run, and all of them shall not take longer than half a second."""


def sentence_lengths(case: Case) -> dict[str, Any]:
    """How many tokens each stack reads."""
    parts = anatomy(case.checkpoint.config)
    if not (parts.reads and parts.writes):
        raise NotHere("This step compares parts of an encoder and a decoder, but this model has only one of the two.")
    return {"n_source": len(case.trace.src_ids), "n_target": len(case.trace.read_ids)}


def parts_to_take(case: Case) -> dict[str, Any]:
    """How many pieces of the output are looked at while parts are taken away."""
    parts, config = anatomy(case.checkpoint.config), case.checkpoint.config
    if not (parts.reads and parts.writes):
        raise NotHere("This step removes parts of an encoder and a decoder, but this model has only one of the two.")
    if config.placing.adds != "table":
        raise NotHere(
            "This step removes the position vectors that are added to the embeddings, but this model adds none."
        )
    return {"pieces": min(written(case, least=2), MOST_PIECES)}


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
    return Answer(right=right, options=worded(*shares), values={**shares, "n": total}, variant=right)


def grows_with_length(case: Case) -> Answer:
    """Which part costs more per token in a sentence twice as long."""
    n = max(int(case.picked["n_source"]), int(case.picked["n_target"]))
    now, then = (_by_group(case, n * times) for times in (1, 2))
    per_token = {word: then[word] / (2 * now[word]) for word in now if now[word]}
    growing = [word for word, times in per_token.items() if times > 1]
    right = growing[0] if len(growing) == 1 else "all"
    values = {"n": n, "twice": 2 * n, "times": per_token["maps"]}
    return Answer(right=right, options=worded(*per_token, "all"), values=values)


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
    return Answer(right="all", options=numbered(numbers), values=values, variant=variant)


def length_doubled(case: Case) -> Answer:
    """How many times the work a sentence twice as long takes."""
    source, target = int(case.picked["n_source"]), int(case.picked["n_target"])
    config = case.checkpoint.config
    counts = costs.grouped(costs.multiply_adds(config, n_source=source, n_target=target))
    double = sum(costs.multiply_adds(config, n_source=2 * source, n_target=2 * target).values())
    times = double / sum(counts.values())
    right = "two" if times < TWICE else ("four" if times > FOUR_TIMES else "three")
    values = {"times": times, "share": counts["maps"] / sum(counts.values())}
    return Answer(right=right, options=worded("one", "two", "three", "four"), values=values, variant=right)


def parts_that_can_go(case: Case) -> Answer:
    """How many of four parts can be taken away, one at a time, so that the model still writes the same."""
    own, found = _without(case, PARTS)
    best = own.log_probs.argmax(-1)
    if not all(clear(trace.log_probs).all() for trace in (own, *found.values())):
        raise NotHere(NEAR)
    kept = {word: bool((trace.log_probs.argmax(-1) == best).all()) for word, trace in found.items()}
    k = sum(kept.values())
    values = {"k": k, "change": str(PARTS["residual"]), **_told(own, found)}
    variant = "all" if k == len(PARTS) else ("some" if k else "none")
    options = numbered({str(n): n for n in range(len(PARTS) + 1)})
    return Answer(right=str(k), options=options, values=values, variant=variant)


def most_missed(case: Case) -> Answer:
    """Without which of three parts the model finds its own output least probable."""
    own, found = _without(case, [word for word in PARTS if word != "residual"])
    order = sorted(found, key=lambda word: found[word].log_prob)
    worst, second = (found[word].log_prob for word in order[:2])
    if second - worst < CLEAR:
        raise NotHere(
            "For this sentence, two of the parts matter about equally, so there is no single answer; try another one."
        )
    values = {**_told(own, found), "change": str(PARTS[order[0]])}
    return Answer(right=order[0], options=worded(*found), values=values, variant=order[0])


def _without(case: Case, parts: Iterable[str]) -> tuple[Trace, dict[str, Trace]]:
    """The run, and those without a part, up to so many pieces and each time after the pieces of the run itself."""
    forced = case.trace.tgt_ids[: int(case.picked["pieces"])]
    own = case.another(forced=forced, max_new=len(forced))
    found = {word: case.another(forced=forced, max_new=len(forced), interventions=(PARTS[word],)) for word in parts}
    if not all(np.isfinite(trace.log_prob) for trace in found.values()):
        raise NotHere("With one of the parts removed, this model computes values that are not finite.")
    return own, found


def _told(own: Trace, found: dict[str, Trace]) -> dict[str, float]:
    return {"own": own.log_prob, **{f"no_{word}": trace.log_prob for word, trace in found.items()}}
