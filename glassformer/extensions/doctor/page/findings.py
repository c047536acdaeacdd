"""Doctor findings: problems in full, the others as one line each, and the report download."""

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

from glassformer.extensions.doctor.library.findings import (
    AREAS,
    MOST_PLACES,
    VERDICTS,
    Finding,
    PageName,
    PageTarget,
    Verdict,
)
from glassformer.extensions.doctor.library.loss_tests import COLUMNS
from glassformer.extensions.doctor.library.report import Report, follows, ordered, told_once
from glassformer.shared import drawing, menu
from glassformer.shared.csv_export import Origin
from glassformer.shared.i18n import here, st, table
from glassformer.state.link import Link
from transformer.i18n import Sentence, joined, say, say_n
from transformer.i18n.sentence import digits

ICONS: Final[dict[Verdict, str]] = {
    "broken": ":material/error:",
    "look": ":material/visibility:",
    "well": ":material/check_circle:",
    "not_applicable": ":material/do_not_disturb_on:",
}
WRONG: Final[tuple[Verdict, ...]] = ("broken", "look")
_COUNTED: Final[dict[Verdict, Callable[[int], Sentence]]] = {
    "broken": lambda n: say_n("Broken: {n} test", "Broken: {n} tests", n),
    "look": lambda n: say_n("Look at this: {n} test", "Look at this: {n} tests", n),
    "well": lambda n: say_n("Well: {n} test", "Well: {n} tests", n),
    "not_applicable": lambda n: say_n("Not applicable: {n} test", "Not applicable: {n} tests", n),
}


def wrong(findings: Sequence[Finding], link: Link) -> None:
    """Draw what is broken, then what is worth a look; the links keep the checkpoint of `link`."""
    for verdict in WRONG:
        found = [one for one in told_once(ordered(findings)) if one.verdict == verdict]
        if found:
            st.subheader(joined(" ", [ICONS[verdict], _COUNTED[verdict](len(found))]), anchor=False)
            for one in found:
                _whole(one, link)


def pairs(report: Report, link: Link) -> None:
    """Draw what became of the pairs, the worst first; the link keeps the checkpoint of `link`."""
    if not report.pairs:
        return
    n_right = sum(one.is_right for one in report.pairs)
    st.subheader(say("Pair by pair"), anchor=False)
    st.caption(
        say_n("{right} of {n} output matches the correct output token for token. The pair with the highest loss "
              "comes first.",
              "{right} of {n} outputs match the correct output token for token. The pair with the highest loss "
              "comes first.",
              len(report.pairs), right=n_right)
    )  # fmt: skip
    columns: dict[str, Sequence[Any]] = {
        "source": [one.source for one in report.pairs],
        "right": [one.right for one in report.pairs],
        "written": [one.written for one in report.pairs],
        "loss": [one.loss for one in report.pairs],
    }
    named = dict(zip(columns, map(here, COLUMNS), strict=True))
    shown: dict[str, Any] = {name: st.column_config.Column(label) for name, label in named.items()}
    shown["loss"] = st.column_config.NumberColumn(
        named["loss"], format="%.3g", help=say("Mean loss per token, in nats.")
    )
    height: Literal["content", "auto"] = "content" if len(report.pairs) <= MOST_PLACES else "auto"
    st.dataframe(table(columns), hide_index=True, height=height, key="pairs_of_report", column_config=shown)
    first = report.pairs[0]
    where = leads_to(PageTarget(page="forcing", source=first.source, reference=first.right), link)
    menu.link("forcing", LABELS["forcing"], where, icon=":material/arrow_forward:")


def others(findings: Sequence[Finding], link: Link) -> None:
    """Draw what is well and what is not applicable, folded."""
    for verdict in ("well", "not_applicable"):
        found = [one for one in findings if one.verdict == verdict]
        if found:
            with st.expander(_COUNTED[verdict](len(found)), icon=ICONS[verdict]):
                _listed(found, link)


def _whole(finding: Finding, link: Link) -> None:
    found = finding.measured
    with st.container(border=True, key=f"finding_{finding.test}", gap="small"):
        with st.container(horizontal=True, vertical_alignment="center"):
            verdict, title = VERDICTS[finding.verdict], drawing.plain(finding.title)
            said = say("{icon} **{title}**: {verdict}", icon=ICONS[finding.verdict], title=title, verdict=verdict)
            st.markdown(said, width="content")
            st.badge(AREAS[finding.area], color="gray")
        if found.headline:
            st.markdown(say("**{text}**", text=drawing.plain(found.headline)))
        if finding.follows:
            st.markdown(follows(drawing.plain(finding.follows)))
        st.markdown(drawing.plain(found.said))
        st.caption(drawing.with_code(_held_against(finding)))
        if found.meaning:
            st.markdown(say("**What it means.** {text}", text=drawing.with_code(found.meaning)))
        if found.causes:
            st.markdown(say("**Usual causes.** {text}", text=drawing.with_code(found.causes)))
        if found.places:
            # Names are quoted, as they are data.
            named = [say("“{name}”", name=drawing.plain(name)) for name in found.places[:MOST_PLACES]]
            named += [say("and {n} more", n=found.more)] if found.more else []
            st.markdown(say("**Where.** {places}", places=joined(", ", named)))
        _way(finding, link)


def _way(finding: Finding, link: Link) -> None:
    """Draw the link to the view that shows it."""
    shown = finding.measured.shown
    if shown is not None:
        menu.link(shown.page, LABELS[shown.page], leads_to(shown, link), icon=":material/arrow_forward:")


def _held_against(finding: Finding) -> Sentence:
    """The number that decides, its threshold, and why that is where it is."""
    found, said = finding.measured, []
    if found.number is not None and found.threshold is not None:
        number, threshold = digits(found.number), digits(found.threshold)
        said.append(say("Measured: {number}. Threshold: {threshold}.", number=number, threshold=threshold))
    if found.why:
        said.append(found.why)
    return joined(" ", said)


def _listed(findings: Sequence[Finding], link: Link) -> None:
    """Draw findings in a few lines each, under the names of their areas."""
    for area, name in AREAS.items():
        found = [one for one in findings if one.area == area]
        if found:
            st.subheader(name, anchor=False)
        for one in found:
            _line(one, link)


def _line(finding: Finding, link: Link) -> None:
    found = finding.measured
    line = say("**{title}.** {said}", title=drawing.plain(finding.title), said=drawing.plain(found.said))
    with st.container(gap=None):
        st.markdown(joined(" ", [ICONS[finding.verdict], line]))
        if held := _held_against(finding):
            st.caption(drawing.with_code(held))
        _way(finding, link)


# ------------------------------------------------------------------------------------------------ where it shows


LABELS: Final[dict[PageName, Sentence]] = {
    "step": say("See it in Translate"),
    "attention": say("See it in Attention"),
    "positions": say("See it in Positions"),
    "masks": say("See it in Masks"),
    "inside": say("See it in Inside"),
    "checkpoints": say("See it in Checkpoints"),
    "forcing": say("Teacher forcing on the worst pair"),
    "doctor": say("See its numbers in Parameters"),
}
_PANELS: Final[dict[str, str]] = {
    "attention": "panel",
    "positions": "positions_panel",
    "masks": "masks_panel",
    "inside": "inside_panel",
    "doctor": "doctor_panel",
}


def leads_to(shown: PageTarget, link: Link) -> Link:
    """A link from the open page to where something shows, without its decoding and changes, as in the examination."""
    looked_at: dict[str, Any] = {name: getattr(shown, name) for name in ("kind", "layer", "head", "step", "tensor")}
    looked_at = {name: value for name, value in looked_at.items() if value is not None}
    if shown.panel and shown.page in _PANELS:
        looked_at[_PANELS[shown.page]] = shown.panel
    source = link.source if shown.source is None else shown.source
    return Link(
        model=link.model,
        revision=link.revision,
        answers=link.answers,
        source=source,
        reference=shown.reference,
        view=link.view.but(query=None, key=None, **looked_at),
    )


# ------------------------------------------------------------------------------------------------ to take away


JSON, MARKDOWN = "report_json", "report_markdown"


def offer(report: Report) -> None:
    """Draw what saves a report, and its Markdown to copy."""
    stem, text = Origin(checkpoint=report.checkpoint).stem("doctor"), here(report.to_markdown())
    with st.container(horizontal=True):
        for label, content, ending, kind, key in (
            (say("Report as JSON"), report.to_json(), "json", "application/json", JSON),
            (say("Report as Markdown"), text, "md", "text/markdown", MARKDOWN),
        ):
            name, icon = f"{stem}.{ending}", ":material/download:"
            st.download_button(label, content, file_name=name, mime=kind, key=key, on_click="ignore", icon=icon)
    with st.expander(say("The report as text, to paste into a forum post")):
        st.code(text, language=None)
