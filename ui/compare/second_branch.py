"""The choice of a second branch: one that was tried, the model's own choice, or a candidate that is clicked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from transformer.checkpoint.load import Checkpoint
from transformer.model.config import ModelConfig
from transformer.runs.query import Query
from ui.compare import differing
from ui.runs.open_run import OpenRun
from ui.runs.step_rows import branch_at, own_choice
from ui.shared import choices
from ui.shared.choices import Kept
from ui.shared.door import st
from ui.state import session
from ui.state.branch_addresses import Branch
from ui.state.view import MAIN, SECOND
from words import say

BRANCH: Final = f"{SECOND}compared_branch"
NONE: Final = "none"  # nothing was chosen
OWN: Final = ""  # no piece is forced


def chosen(main: OpenRun) -> Checkpoint | None:
    """Draw the choice of another branch; returns what it runs on, None where none was chosen."""
    if not main.trace.n_steps:
        st.info(say("This model writes nothing, so that there are no branches."), icon=":material/info:")
        return None
    asked = differing.said().get("forced", NONE)
    options = _options(main, asked)
    choices.menu(Kept(BRANCH, asked, _take), say("The other branch"), options, bare=True)
    if NONE not in options:
        return main.checkpoint
    st.info(
        say("Choose a branch above, or click a candidate below: from that piece on the right run goes another way."),
        icon=":material/call_split:",
    )
    return None


def _options(main: OpenRun, asked: str) -> dict[str, str]:
    """What may be chosen: the model's own choice, every branch but the first run's, and nothing while nothing was."""
    here = main.trace.query.forced
    known = [_written(branch) for branch in session.tried_on(MAIN, own_choice(main.trace.query)) if branch != here]
    branches = {text: branch for text in (*known, asked) if (branch := _read(text, main)) is not None}
    found: dict[str, str] = {OWN: say("Model's own choice")} if here else {}
    found |= {text: _named(branch, main) for text, branch in branches.items()}
    return found if asked in found else {NONE: say("Choose a branch"), **found}


def _written(branch: Branch) -> str:
    return ".".join(map(str, branch))


def _read(text: str, main: OpenRun) -> Branch | None:
    """A branch of an address; None for what cannot be one."""
    if not text or not all(part.isascii() and part.isdigit() and len(part) < 8 for part in text.split(".")):
        return None
    branch = tuple(map(int, text.split(".")))
    return branch if max(branch) < len(main.trace.vocabulary) else None


def _named(branch: Branch, main: OpenRun) -> str:
    return say("Step {n}: {piece}", n=len(branch), piece=main.trace.vocabulary[branch[-1]])


def _take(asked: str) -> None:
    differing.differ(forced=None if asked == NONE else asked, result=None)


def branching(run: OpenRun) -> Callable[[int], None]:
    """Callback with a candidate of a run's step: the second run goes on from it.

    A session keeps its callbacks, so this one does not hold the run with all its maps.
    """
    written, step, base = run.trace.tgt_ids, run.view.step, own_choice(run.trace.query)
    return _Branching(written, step, base, run.checkpoint.config)


class _Branching:
    def __init__(self, written: Branch, step: int, base: Query, config: ModelConfig) -> None:
        self._written, self._step, self._base, self._config = written, step, base, config

    def __call__(self, piece: int) -> None:
        if not 0 <= piece < self._config.tgt_vocab_size or piece in self._config.never_written:
            return
        branch = branch_at(self._written, self._step, piece)
        if branch == self._written[: len(branch)]:
            return
        session.remember(MAIN, self._base, branch)
        session.stand(MAIN, notes=())
        differing.differ(forced=_written(branch), result=None)
