"""One line of a file of sentences: all of its texts, and the ways to every page that shows its run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from transformer.analysis.many import LineResult
from ui.runs.open_run import REVISION_LENGTH
from ui.sentences.sentence_runs import Job
from ui.shared import drawing, menu
from ui.shared.door import st
from ui.state import session
from ui.state.link import Link
from words import joined, say

OPENED = "sentences_opened"
_PAGES: Final = {
    "step": (say("Step through decoding"), ":material/play_arrow:"),
    "attention": (say("Attention"), ":material/grid_on:"),
    "positions": (say("Positions"), ":material/waves:"),
    "masks": (say("Masks"), ":material/border_clear:"),
    "inside": (say("Inside the model"), ":material/account_tree:"),
    "forcing": (say("Teacher forcing"), ":material/school:"),
}
_WITH_REFERENCE: Final = "forcing"  # what there is to see needs one


def opened(job: Job, results: Sequence[LineResult]) -> None:
    """Draw the line that the view names, if it is there."""
    line = session.view().line
    one = None if line is None else next((one for one in results if one.line.number == line + 1), None)
    if one is None:
        return
    with st.container(border=True, key=OPENED):
        st.markdown(_texts(one))
        if one.problem is not None:
            st.error(drawing.plain(one.problem))
            return
        link = leads_to(job, one)
        with st.container(horizontal=True, gap="medium"):
            for path, (name, icon) in _PAGES.items():
                if path != _WITH_REFERENCE or link.reference:
                    menu.link(path, name, link, icon=icon)


def leads_to(job: Job, one: LineResult) -> Link:
    """What other pages shall show: the run of this line."""
    view = replace(session.view(), step=0, query=None, key=None)
    line, revision = one.line, job.how.checkpoint[:REVISION_LENGTH]
    return replace(job.link, source=line.source, reference=line.reference or None, revision=revision, view=view)


def _texts(one: LineResult) -> str:
    said = [
        say("**Line {n}**", n=one.line.number),
        say("**Source:** {text}", text=drawing.plain(one.line.source)),
    ]
    if one.output:
        said.append(say("**Output:** {text}", text=drawing.plain(one.output)))
    if one.line.reference is not None:
        said.append(say("**Reference:** {text}", text=drawing.plain(one.line.reference)))
    return joined("  \n", said)
