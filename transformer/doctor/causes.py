"""Which findings follow from which: a model that is put together wrongly also writes badly.

What it writes is looked at by many tests, and one mistake below makes all of them speak. The one that names the
mistake comes first, and the others say that they follow from it.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from transformer.doctor.findings import VERDICTS, Finding

FIRST: Final = (
    "leak", "finite", "causality", "own_token", "cache", "positions", "source", "n_heads", "score_scale", "norm",
    "position_shift", "scale_embedding", "activation", "exchanged_tokenizers",
)  # fmt: skip
"""Tests that name a mistake, which others show; the likeliest cause first."""
EFFECTS: Final = (
    "ending", "repetition", "copying", "lengths", "variety", "loss", "loss_by_position", "free_running", "reported",
)  # fmt: skip
"""Tests that look at what the model writes, or at how well it guesses."""
OF_A_LEAK: Final = (
    *EFFECTS, "source", "initial", "drawn_layers", "dead_heads", "uniform_heads", "collapsed_heads",
    "collapsed_embeddings",
)  # fmt: skip
"""A decoder that looks up what it has to write needs neither the source nor most of itself."""


def ordered(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """All findings: what is broken, what to look at, what is well, what says nothing; causes before what follows.

    Args:
        findings: In the order of the examination; some may be still to come.
    """
    broken = {one.test: one for one in findings if one.verdict == "broken"}
    cause = next((broken[name] for name in FIRST if name in broken), None)
    if cause is not None:
        findings = [_following(one, cause) for one in findings]
    rank = {name: i for i, name in enumerate(VERDICTS)}
    return tuple(sorted(findings, key=lambda one: (rank[one.verdict], bool(one.follows), one.test != "leak")))


def _following(one: Finding, cause: Finding) -> Finding:
    follows = one.test in (OF_A_LEAK if cause.test == "leak" else EFFECTS) and one.verdict in ("broken", "look")
    return replace(one, follows=cause.measured.headline or cause.title) if follows else one
