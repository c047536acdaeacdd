"""The branches that were tried on a query of a slot, for its list of outputs."""

from __future__ import annotations

from transformer.runs.query import Query
from ui.state import branch_addresses, session
from ui.state.branch_addresses import Branch
from ui.state.view import Slot


def tried_on(slot: Slot, base: Query) -> tuple[Branch, ...]:
    """The forced beginnings that were tried on a query."""
    family, tried = session.standing(slot).branches
    return tried if family in (None, base) else ()


def remember(slot: Slot, base: Query, forced: Branch) -> tuple[Branch, ...]:
    """Add a forced beginning to those tried on a query; the oldest leave when there are too many."""
    tried = tried_on(slot, base)
    if forced and forced not in tried:
        tried = (*tried, forced)[-branch_addresses.MOST :]
    session.stand(slot, branches=(base, tried))
    return tried
