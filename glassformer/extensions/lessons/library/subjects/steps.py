"""The decoding step that a lesson looks at. Steps count from 1."""

from typing import Any

from glassformer.extensions.lessons.library.case import Case, QuestionNotApplicable
from transformer.analysis.one_weight import hardest_step as least_sure
from transformer.i18n import say_n
from transformer.model.anatomy import anatomy


def first_step(case: Case) -> dict[str, Any]:
    """The first one."""
    written(case, least=1)
    return {"step": 1}


def last_step(case: Case) -> dict[str, Any]:
    """The last one."""
    return {"step": written(case, least=1)}


def hardest_step(case: Case) -> dict[str, Any]:
    """The one at which the model was least sure (entropy), and what it wrote there."""
    n_steps = written(case, least=2)
    at = least_sure(case.trace.entropies(), range(n_steps))
    second = next(one for one in case.trace.step(at).candidates if not one.chosen and one.rule is None)
    return {"step": at + 1, "piece": case.trace.tgt_tokens[at], "alt": second.piece, "alt_id": second.id}


def cached_step(case: Case) -> dict[str, Any]:
    """A step in the middle of the output, what it reads, and how much is read and written in all."""
    n_steps, trace = written(case, least=4), case.trace
    at = n_steps // 2
    read = trace.row_label(trace.row_of(at)).reads
    return {"step": at + 1, "read": read, "n": n_steps, "s": len(trace.src_ids), "kind": "decoder"}


def written(case: Case, *, least: int) -> int:
    """How many pieces the model wrote, if these are as many as a step needs."""
    n_steps = case.trace.n_steps
    if not anatomy(case.checkpoint.config).writes:
        raise QuestionNotApplicable("This encoder-only model writes nothing; choose a model with a decoder.")
    if n_steps < least:
        raise QuestionNotApplicable(
            say_n(
                "The output has only {n} token, but this step needs {least}; try a longer sentence.",
                "The output has only {n} tokens, but this step needs {least}; try a longer sentence.",
                n_steps,
                least=least,
            )
        )
    return n_steps
