"""Doctor tests of attention: dead, equal, uniform, collapsed and saturated heads; a list of attention sinks.

A map says nothing if it has the same weight everywhere, the same for every query, or all of it on one key.
`extensions.doctor.library.head_measures` measures; this module judges the numbers.

Source: Clark et al. (2019), "What Does BERT Look At?", section 3.2, for heads that rest on one token; Xiao et al.
(2023), "Efficient Streaming Language Models with Attention Sinks".
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor

from glassformer.extensions.doctor.library.context import DoctorTest, ExaminationContext, read_again
from glassformer.extensions.doctor.library.findings import DoctorTestResult, NotTestable, at_least, at_most
from glassformer.extensions.doctor.library.head_measures import (
    SURE,
    HeadMeasures,
    MeasuredHead,
    each,
    heads_of,
    heads_with_rows,
    pairs_of,
    shown,
    texts_of,
)
from transformer.i18n import Sentence, say, say_n

UNHEARD = 1e-5
"""Share of the stream's length below which what is added to it changes nothing that matters."""
ALIKE = 0.01
"""Two heads nearer than this have the same parameters."""
SAME_MAP = 0.01
FLAT = 0.01
"""Scores that differ by less make weights that differ by less than 1 %."""
MANY_SATURATED = 0.4
RESTS = 0.8
"""A head whose mean weight on one token is above this rests on it."""

of_attention = partial(DoctorTest, "attention")


@of_attention(
    say("No head is dead"),
    threshold=UNHEARD,
    why=say(
        "If the vector that a head adds has only {share:g} times the stream's length, it is nearly lost in 32-bit "
        "rounding. In the shipped checkpoints, every head's vector has at least {least:g} times that length.",
        share=UNHEARD,
        least=at_least("dead_heads"),
    ),
    meaning=say(
        "These heads do not affect any output: without them, the model would write exactly the same text. The "
        "model has less capacity than its size suggests."
    ),
    causes=say(
        "The head's rows of W_V or its columns of W_O are 0. This happens after pruning, after an import that "
        "filled in only some heads, or with very strong weight decay. Look at the head's map and at the two "
        "matrices. If the head was pruned on purpose, nothing is wrong."
    ),
    of_wiring=True,
)
def dead_heads(patient: ExaminationContext) -> DoctorTestResult:
    """Heads that write nothing, whatever the sentence."""
    loud = dict(each(heads_of(patient), lambda one: np.fmin(one.writes, one.says)))
    silent = [head for head, loudness in loud.items() if not loudness >= UNHEARD]
    least = min(loud.values())
    if not silent:
        said = say(
            "Even the weakest of {n} heads adds a vector of up to {share:.2%} of the stream's length.",
            n=len(loud), share=least,
        )  # fmt: skip
        return DoctorTestResult(verdict="well", number=least, said=said)
    whole = any(all(one in silent for one in loud if one.place == head.place) for head in silent)
    return DoctorTestResult(
        verdict="broken" if whole else "look",
        number=least,
        said=say_n(
            "{n} of {whole} heads adds nothing to the residual stream in any sentence.",
            "{n} of {whole} heads add nothing to the residual stream in any sentence.",
            len(silent), whole=len(loud),
        ),
        meaning=say(
            "In at least one layer, all heads of an attention sub-layer add nothing to the stream, so this "
            "sub-layer passes no information between tokens."
        ) if whole else "",
        places=tuple(map(str, silent)),
        shown=shown(patient, silent[0]),
    )  # fmt: skip


@of_attention(
    say("No two heads are equal"),
    threshold=ALIKE,
    why=say(
        "This is the distance between W_Q^T W_K of two heads: 0 if the heads are equal, 1 if they have nothing in "
        "common. Heads start from random values, at a distance of about 1, and training does not bring them closer "
        "together. In the shipped checkpoints, no two heads are closer than {least:g}.",
        least=at_least("equal_heads"),
    ),
    causes=say(
        "When the file was converted, one head's parameters overwrote another's, or shared key-value heads were "
        "repeated wrongly; or both heads started with the same values and always got the same gradients. Compare "
        "the file with the original. Before you train this model further, give the heads different values."
    ),
)
def equal_heads(patient: ExaminationContext) -> DoctorTestResult:
    """Two heads of a layer with the same scores."""
    pairs = [pair for pair in pairs_of(patient) if np.isfinite(pair[2])]
    if not pairs:
        raise NotTestable("No layer has two heads to compare.")
    least = min(apart for *_, apart in pairs)
    alike = _with_equal_maps(patient, [(a, b) for a, b, apart in pairs if apart < ALIKE])
    if not alike:
        said = say("Within a layer, the distance between the two most similar heads is {apart:.2f}.", apart=least)
        return DoctorTestResult(verdict="well", number=least, said=said)
    return DoctorTestResult(
        verdict="look",
        number=least,
        said=say_n(
            "In {n} pair of heads, both heads have the same W_Q and W_K.",
            "In {n} pairs of heads, both heads have the same W_Q and W_K.",
            len(alike),
        ),
        places=tuple(f"{a} = {b}" for a, b in alike),
        shown=shown(patient, alike[0][0]),
    )


def _with_equal_maps(
    patient: ExaminationContext, pairs: list[tuple[MeasuredHead, MeasuredHead]]
) -> list[tuple[MeasuredHead, MeasuredHead]]:
    """Those pairs whose maps agree, too: a bias of positions may be another in each head."""
    compare = _Compare(patient, pairs)
    if pairs:
        read_again(patient, texts_of(patient), compare)
    return [pair for pair in pairs if compare.apart[pair] < SAME_MAP]


class _Compare:
    """Sees the weights of pairs of heads, and notes how far apart they ever were."""

    causal = True

    def __init__(self, patient: ExaminationContext, pairs: list[tuple[MeasuredHead, MeasuredHead]]) -> None:
        self.apart = dict.fromkeys(pairs, 0.0)
        self._sites: dict[str, list[tuple[MeasuredHead, MeasuredHead]]] = {}
        for pair in pairs:
            site = patient.anatomy.attention(pair[0].kind).site(pair[0].layer, "weights")
            self._sites.setdefault(site, []).append(pair)

    def wants(self, site: str) -> bool:
        return site in self._sites

    def visit(self, site: str, value: Tensor, offset: int) -> Tensor:
        for pair in self._sites[site]:
            first, second = (value[:, one.head] for one in pair)
            self.apart[pair] = max(self.apart[pair], float(torch.dist(first, second, p=float("inf"))))
        return value


def _flat(
    patient: ExaminationContext, measure: Callable[[HeadMeasures], np.ndarray]
) -> tuple[list[MeasuredHead], int, float]:
    """The heads whose scores hardly differ by a measure, of how many, and the least difference of all."""
    of_each = dict(each(heads_with_rows(patient), measure))
    return [head for head, value in of_each.items() if not value >= FLAT], len(of_each), min(of_each.values())


def _of_flat(patient: ExaminationContext, flat: list[MeasuredHead], least: float, said: Sentence) -> DoctorTestResult:
    if not flat:
        return DoctorTestResult(verdict="well", number=least, said=said)
    places = tuple(map(str, flat))
    return DoctorTestResult(verdict="look", number=least, said=said, places=places, shown=shown(patient, flat[0]))


_WHY_FLAT = say(
    "Scores that differ by {flat:g} give weights that differ by 1 %. In the shipped checkpoints, the largest "
    "difference in each head is at least {least:g}.",
    flat=FLAT,
    least=at_least("uniform_heads", "collapsed_heads"),
)
_CAUSES_FLAT = say(
    "The head's W_Q or W_K is 0 or nearly 0 (pruned, not filled in by an import, or shrunk by weight decay), all "
    "tokens have the same vector in this layer, or the factor that scales the scores is far too small."
)


@of_attention(
    say("No head gives all keys the same weight"),
    threshold=FLAT,
    why=_WHY_FLAT,
    meaning=say(
        "A head with equal weights takes the plain mean of all value vectors that it may see, so it cannot choose "
        "between tokens."
    ),
    causes=_CAUSES_FLAT,
    of_wiring=True,
)
def uniform_heads(patient: ExaminationContext) -> DoctorTestResult:
    """Heads whose scores are the same for all keys."""
    flat, n, least = _flat(patient, lambda one: one.spread)
    well = say(
        "In each of {n} heads, the scores differ between keys; the largest difference is at least {least:.2g}.",
        n=n,
        least=least,
    )
    found = say_n(
        "{n} of {whole} heads gives all keys the same weight, in every row of every sentence.",
        "{n} of {whole} heads give all keys the same weight, in every row of every sentence.",
        len(flat),
        whole=n,
    )
    return _of_flat(patient, flat, least, found if flat else well)


@of_attention(
    say("Every head depends on the query"), threshold=FLAT, why=_WHY_FLAT, causes=_CAUSES_FLAT, of_wiring=True
)
def collapsed_heads(patient: ExaminationContext) -> DoctorTestResult:
    """Heads whose weights do not depend on the query; uniform heads have a test of their own."""
    flat, n, least = _flat(patient, lambda one: np.where(one.spread < FLAT, np.inf, one.asks))
    well = say(
        "In each of {n} heads, the scores depend on the query; the largest change from one query to another is at "
        "least {least:.2g}.",
        n=n,
        least=least,
    )
    found = say_n(
        "{n} of {whole} heads looks at the same keys for every query.",
        "{n} of {whole} heads look at the same keys for every query.",
        len(flat),
        whole=n,
    )
    return _of_flat(patient, flat, least, found if flat else well)


@of_attention(
    say("The softmax is not saturated"),
    threshold=MANY_SATURATED,
    why=say(
        "In a trained model, some heads put nearly all their weight on one key, but most do not: in the shipped "
        "checkpoints, this happens in at most {most:.1%} of the rows.",
        most=at_most("saturated_softmax"),
    ),
    meaning=say(
        "The softmax is saturated: attention copies single tokens instead of mixing several. In training, no "
        "gradient reaches the queries and keys of the saturated rows."
    ),
    causes=say(
        "The scores were not divided by the square root of d_head, the number of heads differs from training, the "
        "embeddings were scaled twice, or training diverged. Look at score_scale and n_heads in the config, and at "
        "the lengths of queries and keys."
    ),
)
def saturated_softmax(patient: ExaminationContext) -> DoctorTestResult:
    """Whether most rows have all their weight on one key."""
    found, config = heads_with_rows(patient), patient.config
    if config.score_scale is not None and config.score_scale > config.d_head**-0.5:
        raise NotTestable(
            "This model multiplies q·k by {scale:.4g} instead of dividing it by √d_head, so sharp weights are not "
            "a fault.", scale=config.score_scale,
        )  # fmt: skip
    n_rows = sum(one.n_rows * one.saturated.size for one in found.values())
    share = sum(float(one.saturated.sum()) * one.n_rows for one in found.values()) / n_rows
    said = say(
        "Over all heads, {share:.1%} of the rows have at least {sure:.1%} of their weight on one key.",
        share=share,
        sure=SURE,
    )
    if share < MANY_SATURATED:
        return DoctorTestResult(verdict="well", number=share, said=said)
    full = [head for head, value in each(found, lambda one: one.saturated) if value >= MANY_SATURATED]
    at = shown(patient, full[0]) if full else None
    return DoctorTestResult(verdict="look", number=share, said=said, places=tuple(map(str, full)), shown=at)


@of_attention(
    say("Heads that attend mostly to the first or last token"),
    threshold=RESTS,
    why=say(
        "A head above this threshold looks at the first or last token in most rows. It is listed but does not "
        "count as a fault."
    ),
)
def attention_sinks(patient: ExaminationContext) -> DoctorTestResult:
    """Heads that put nearly all weight on the first or the end token; this is not a fault."""
    found = heads_with_rows(patient)
    first, last = (
        [head for head, value in each(found, on) if value > RESTS]
        for on in (lambda one: one.on_first, lambda one: one.on_last)
    )
    most = max(max(float(one.on_first.max()), float(one.on_last.max())) for one in found.values())
    resting = [*first, *last]
    return DoctorTestResult(
        verdict="well",
        number=most,
        said=say_n(
            "{n} head puts most of its weight on the first or last token.",
            "{n} heads put most of their weight on the first or last token.",
            len(resting),
        ),
        meaning=say(
            "A first or last token that gets most of the weight is called an attention sink. Weights add up to 1, "
            "so a head with nothing to do in a sentence still has to put its weight somewhere. Healthy trained "
            "models have such heads, too."
        )
        if resting
        else "",
        places=tuple(map(str, resting)),
        shown=shown(patient, resting[0]) if resting else None,
    )


TESTS = (dead_heads, equal_heads, uniform_heads, collapsed_heads, saturated_softmax, attention_sinks)
