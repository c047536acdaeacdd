"""Heads that do nothing, and heads that are the same.

`transformer.doctor.heads` measures; here stands what the numbers mean, and in
`transformer.doctor.attention_maps` what those of their maps mean. Knows nothing of Streamlit.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from transformer.doctor import attention_maps
from transformer.doctor.heads import NO_RUN, Head, each, heads_of, names, pairs_of, shown, texts_of
from transformer.doctor.patient import Patient, Test
from transformer.doctor.report import MOST_PLACES, Measured, not_applicable, well
from transformer.doctor.rereading import read_again
from words import Sentence, say, say_n

UNHEARD = 1e-5
"""Share of the stream's length below which what is added to it changes nothing that matters."""
ALIKE = 0.01
"""Two heads nearer than this have the same parameters."""
SAME_MAP = 0.01


def dead(patient: Patient) -> Measured:
    """Heads that write nothing, whatever the sentence."""
    found = heads_of(patient)
    if not found:
        return not_applicable(NO_RUN)
    loud = dict(each(found, lambda one: np.fmin(one.writes, one.says)))
    silent = [head for head, loudness in loud.items() if not loudness >= UNHEARD]
    least = min(loud.values())
    if not silent:
        said = say(
            "The most silent of {n} heads writes {share:.2%} of the stream's length where it writes most.",
            n=len(loud), share=least,
        )  # fmt: skip
        return well(said, least, UNHEARD, _WHY_DEAD)
    whole = [head for head in silent if all(one in silent for one in loud if one.place == head.place)]
    return Measured(
        verdict="broken" if whole else "look",
        number=least,
        threshold=UNHEARD,
        said=say_n(
            "{n} of {whole} heads writes nothing, in any sentence.",
            "{n} of {whole} heads write nothing, in any sentence.",
            len(silent), whole=len(loud),
        ),
        why=_WHY_DEAD,
        meaning=_WHOLE_LAYER if whole else _DEAD,
        causes=say(
            "The head's rows of W_V or its columns of W_O are 0, as after pruning, after an import "
            "that filled only some heads, or after strong weight decay. Look at the head's map and at the two "
            "matrices; if the head was pruned on purpose, nothing is wrong."
        ),
        places=names(silent),
        shown=shown(patient, silent[0]),
    )  # fmt: skip


_WHY_DEAD: Sentence = say(
    "What is {share:g} of the stream's length or less is nearly lost in the rounding of 32-bit numbers. In the "
    "shipped checkpoints no head writes less than 0.1 of it.",
    share=UNHEARD,
)
_DEAD: Sentence = say(
    "These heads have no part in any output: without them the model writes the same. It has less to work with than "
    "its size says."
)
_WHOLE_LAYER: Sentence = say(
    "All heads of a layer write nothing, so that nothing passes from one token to another there: the layer is a "
    "feed-forward network and no more."
)


def equal(patient: Patient) -> Measured:
    """Two heads of a layer with the same scores."""
    pairs = [pair for pair in pairs_of(patient) if np.isfinite(pair[2])]
    if not pairs:
        return not_applicable(say("No layer has two heads that could be compared."))
    least = min(apart for *_, apart in pairs)
    alike = _with_equal_maps(patient, [(a, b) for a, b, apart in pairs if apart < ALIKE])
    if not alike:
        said = say("The two heads of a layer that are nearest to each other are {apart:.2f} apart.", apart=least)
        return well(said, least, ALIKE, _WHY_EQUAL)
    return Measured(
        verdict="look",
        number=least,
        threshold=ALIKE,
        said=say_n(
            "{n} pair of heads has the same W_Q and W_K.", "{n} pairs of heads have the same W_Q and W_K.", len(alike)
        ),
        why=_WHY_EQUAL,
        meaning=say(
            "Both heads of a pair look at the same tokens in every sentence, so that one of them adds nothing to "
            "what the other sees."
        ),
        causes=say(
            "One head's parameters were copied over another's while a file was converted, heads of "
            "keys and values that several heads share were repeated wrongly, or both began with the same values and "
            "got the same gradients. Compare the file with its source; a model trained from it needs other first "
            "values."
        ),
        places=tuple(f"{a} = {b}" for a, b in alike[:MOST_PLACES]),
        shown=shown(patient, alike[0][0]),
    )


_WHY_EQUAL: Sentence = say(
    "Distance of W_Q^T W_K of two heads: 0 if they are equal, 1 if they have nothing in common. Heads begin at "
    "random values, about 1 apart, and training does not bring two together; in the shipped checkpoints none are "
    "nearer than 0.77."
)


def _with_equal_maps(patient: Patient, pairs: list[tuple[Head, Head]]) -> list[tuple[Head, Head]]:
    """Those pairs whose maps agree, too: a bias of positions may be another in each head."""
    compare = _Compare(patient, pairs)
    if pairs:
        read_again(patient, texts_of(patient), compare)
    return [pair for pair in pairs if compare.apart[pair] < SAME_MAP]


class _Compare:
    """Sees the weights of pairs of heads, and notes how far apart they ever were."""

    causal = True

    def __init__(self, patient: Patient, pairs: list[tuple[Head, Head]]) -> None:
        self.apart = dict.fromkeys(pairs, 0.0)
        self._sites: dict[str, list[tuple[Head, Head]]] = {}
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


TESTS: tuple[Test, ...] = (
    Test("dead_heads", "attention", say("No head is dead"), dead),
    Test("equal_heads", "attention", say("No two heads are equal"), equal),
    *attention_maps.TESTS,
)
