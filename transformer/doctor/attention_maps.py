"""Maps that say nothing: the same weight everywhere, the same whichever token asks, or all of it on one key.

`transformer.doctor.heads` measures; here stands what the numbers mean. Knows nothing of Streamlit.

Source: Clark et al. (2019), "What Does BERT Look At?", section 3.2, for heads that rest on one token; Xiao et al.
(2023), "Efficient Streaming Language Models with Attention Sinks".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from transformer.doctor.heads import NO_RUN, SURE, Heads, each, heads_of, names, shown
from transformer.doctor.patient import Patient, Test
from transformer.doctor.report import Measured, not_applicable, well
from words import Sentence, say, say_n

FLAT = 0.01
"""Scores that differ by less make weights that differ by less than 1 %."""
MANY_SATURATED = 0.4
RESTS = 0.8
"""A head whose mean weight on one token is above this rests on it."""


def uniform(patient: Patient) -> Measured:
    """Heads whose scores are the same for all keys."""
    return _flat(
        patient,
        lambda one: one.spread,
        fine=lambda n, least: say(
            "In each of {n} heads scores differ between keys, by {least:.2g} or more somewhere.", n=n, least=least
        ),
        bad=lambda n, whole: say_n(
            "{n} of {whole} heads weighs all keys alike, in every row of every sentence.",
            "{n} of {whole} heads weigh all keys alike, in every row of every sentence.",
            n,
            whole=whole,
        ),
        meaning=say(
            "Such a head takes the plain mean of all values that it may see: it cannot choose between tokens."
        ),
    )


def collapsed(patient: Patient) -> Measured:
    """Heads whose weights do not depend on the query."""
    return _flat(
        patient,
        lambda one: np.where(one.spread < FLAT, np.inf, one.asks),  # uniform heads have a test of their own
        fine=lambda n, least: say(
            "In each of {n} heads scores depend on the query, by {least:.2g} or more somewhere.", n=n, least=least
        ),
        bad=lambda n, whole: say_n(
            "{n} of {whole} heads looks at the same keys, whichever token asks.",
            "{n} of {whole} heads look at the same keys, whichever token asks.",
            n,
            whole=whole,
        ),
        meaning=say(
            "The queries have no say in such a head: it gives every token the same mixture of values, as if there "
            "were one query for all."
        ),
    )


def _flat(
    patient: Patient,
    measure: Callable[[Heads], np.ndarray],
    *,
    fine: Callable[[int, float], Sentence],
    bad: Callable[[int, int], Sentence],
    meaning: Sentence,
) -> Measured:
    found = heads_of(patient)
    if not any(one.n_rows for one in found.values()):
        return not_applicable(NO_RUN)
    of_each = dict(each({kind: one for kind, one in found.items() if one.n_rows}, measure))
    flat, least = [head for head, value in of_each.items() if not value >= FLAT], min(of_each.values())
    if not flat:
        return well(fine(len(of_each), least), least, FLAT, _WHY_FLAT)
    return Measured(
        verdict="look",
        number=least,
        threshold=FLAT,
        said=bad(len(flat), len(of_each)),
        why=_WHY_FLAT,
        meaning=meaning,
        causes=say(
            "W_Q or W_K of the head is 0 or nearly so (pruned, never filled by an import, worn away by "
            "weight decay), all tokens have the same vector there, or a score scale that is far too small."
        ),
        places=names(flat),
        shown=shown(patient, flat[0]),
    )


_WHY_FLAT: Sentence = say(
    "Scores that differ by {flat:g} make weights that differ by 1 %. In the shipped checkpoints each head has "
    "differences of 0.6 and more.",
    flat=FLAT,
)


def saturated(patient: Patient) -> Measured:
    """Whether most rows have all their weight on one key."""
    found = {kind: one for kind, one in heads_of(patient).items() if one.n_rows}
    if not found:
        return not_applicable(NO_RUN)
    config = patient.config
    if config.score_scale is not None and config.score_scale > config.d_head**-0.5:
        return not_applicable(
            say("This model multiplies q·k by {scale:.4g} instead of dividing it by √d_head, so sharp weights are no "
                "fault of it.", scale=config.score_scale)
        )  # fmt: skip
    n_rows = sum(one.n_rows * one.saturated.size for one in found.values())
    share = sum(float(one.saturated.sum()) * one.n_rows for one in found.values()) / n_rows
    said = say(
        "{share:.1%} of all rows, over all heads, have {sure:.1%} of their weight on one key.", share=share, sure=SURE
    )
    why = say(
        "Some heads of a trained model are that sharp, most are not: in the shipped checkpoints it is 2 % of the "
        "rows at most."
    )
    if share < MANY_SATURATED:
        return well(said, share, MANY_SATURATED, why)
    full = [head for head, value in each(found, lambda one: one.saturated) if value >= MANY_SATURATED]
    return Measured(
        verdict="look",
        number=share,
        threshold=MANY_SATURATED,
        said=said,
        why=why,
        meaning=say(
            "The softmax has run into its limit: attention copies single tokens instead of mixing them, and while "
            "training no gradient reaches the queries and keys of these rows."
        ),
        causes=say(
            "Scores that are not divided by the square root of d_head, another number of heads than "
            "the model was trained with, embeddings scaled twice, or a training that diverged. Look at the config's "
            "score_scale and n_heads, and at the lengths of queries and keys."
        ),
        places=names(full),
        shown=shown(patient, full[0]) if full else None,
    )


def resting(patient: Patient) -> Measured:
    """Heads that put nearly all weight on the first or the end token; that is no fault."""
    found = {kind: one for kind, one in heads_of(patient).items() if one.n_rows}
    if not found:
        return not_applicable(NO_RUN)
    first = [(head, value) for head, value in each(found, lambda one: one.on_first) if value > RESTS]
    last = [(head, value) for head, value in each(found, lambda one: one.on_last) if value > RESTS]
    most = max(max(float(one.on_first.max()), float(one.on_last.max())) for one in found.values())
    resting = [head for head, _ in (*first, *last)]
    none = say("No head has more than {share:.0%} of its weight on the first or the last token.", share=RESTS)
    some = say_n(
        "{n} head has nearly all its weight on the first or the last token.",
        "{n} heads have nearly all their weight on the first or the last token.",
        len(resting),
    )
    return Measured(
        verdict="well",
        number=most,
        threshold=RESTS,
        said=some if resting else none,
        why=say("Above that share a head rests there in most rows; it is named and not called a fault."),
        meaning=say(
            "Such a token is a sink: as weights add up to 1, a head that has nothing to do in a sentence has to put "
            "them somewhere. Trained models have such heads."
        )
        if resting
        else "",
        places=names(resting),
        shown=shown(patient, resting[0]) if resting else None,
    )


TESTS: tuple[Test, ...] = (
    Test("uniform_heads", "attention", say("No head weighs all keys alike"), uniform),
    Test("collapsed_heads", "attention", say("Every head takes notice of the query"), collapsed),
    Test("saturated_softmax", "attention", say("The softmax is not saturated"), saturated),
    Test("attention_sinks", "attention", say("Heads that rest on the first or the last token"), resting),
)
