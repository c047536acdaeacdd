"""A report to take away: as JSON for programs, as Markdown for people, and that to paste into a thread."""

from __future__ import annotations

from transformer.doctor.whole import Report
from ui.shared.door import here, st
from ui.shared.saving import Origin
from words import say

JSON, MARKDOWN = "report_json", "report_markdown"


def offer(report: Report) -> None:
    """Draw what saves a report, and its Markdown to copy.

    Args:
        report: Of an examination that is over.
    """
    stem, text = Origin(checkpoint=report.checkpoint).stem("doctor"), here(report.to_markdown())
    with st.container(horizontal=True):
        st.download_button(
            say("Report as JSON"), report.to_json(), file_name=f"{stem}.json", mime="application/json",
            key=JSON, on_click="ignore", icon=":material/download:",
        )  # fmt: skip
        st.download_button(
            say("Report as Markdown"), text, file_name=f"{stem}.md", mime="text/markdown",
            key=MARKDOWN, on_click="ignore", icon=":material/download:",
        )  # fmt: skip
    with st.expander(say("The report as text, to paste into a thread")):
        st.code(text, language=None, wrap_lines=True)
