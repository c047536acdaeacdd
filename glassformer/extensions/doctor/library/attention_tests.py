"""Doctor tests of attention: heads that write nothing, are the same, or give all keys the same weight.

`extensions.doctor.library.head_measures` measures; this module judges the numbers. No wiring explains such heads.
"""

from functools import partial

import numpy as np
import torch
from torch import Tensor

from glassformer.extensions.doctor.library.context import DoctorTest, ExaminationContext, read_again
from glassformer.extensions.doctor.library.findings import DoctorTestResult, NotTestable, at_least
from glassformer.extensions.doctor.library.head_measures import MeasuredHead, each, heads_of, pairs_of, shown, texts_of
from transformer.i18n import say, say_n

UNHEARD = 1e-5
"""Share of the stream's length below which what is added to it changes nothing that matters."""
ALIKE = 0.01
"""Two heads nearer than this have the same parameters."""
SAME_MAP = 0.01
FLAT = 0.01
"""Scores that differ by less make weights that differ by less than 1 %."""

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


@of_attention(
    say("No head gives all keys the same weight"),
    threshold=FLAT,
    why=say(
        "Scores that differ by {flat:g} give weights that differ by 1 %. In the shipped checkpoints, the largest "
        "difference in each head is at least {least:g}.",
        flat=FLAT,
        least=at_least("uniform_heads"),
    ),
    meaning=say(
        "A head with equal weights takes the plain mean of all value vectors that it may see, so it cannot choose "
        "between tokens."
    ),
    causes=say(
        "The head's W_Q or W_K is 0 or nearly 0 (pruned, not filled in by an import, or shrunk by weight decay), all "
        "tokens have the same vector in this layer, or the factor that scales the scores is far too small."
    ),
    of_wiring=True,
)
def uniform_heads(patient: ExaminationContext) -> DoctorTestResult:
    """Heads whose scores are the same for all keys."""
    of_each = dict(each(heads_of(patient), lambda one: one.spread))
    flat, n, least = [head for head, value in of_each.items() if not value >= FLAT], len(of_each), min(of_each.values())
    if not flat:
        well = say(
            "In each of {n} heads, the scores differ between keys; the largest difference is at least {least:.2g}.",
            n=n,
            least=least,
        )
        return DoctorTestResult(verdict="well", number=least, said=well)
    said = say_n(
        "{n} of {whole} heads gives all keys the same weight, in every row of every sentence.",
        "{n} of {whole} heads give all keys the same weight, in every row of every sentence.",
        len(flat),
        whole=n,
    )
    places = tuple(map(str, flat))
    return DoctorTestResult(verdict="look", number=least, said=said, places=places, shown=shown(patient, flat[0]))


TESTS = (dead_heads, equal_heads, uniform_heads)
