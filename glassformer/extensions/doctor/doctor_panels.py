"""Part Findings of the page *Doctor*: settings, own sentences, progress, verdict, findings, pairs, saved reports."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NoReturn

import numpy as np

from glassformer.charts.marks import Axis, Numbers, bars, formatted
from glassformer.charts.theme import capitalised
from glassformer.extensions.doctor.examinations import ExaminationProgress, ExaminationRequest, examinations
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
from glassformer.extensions.importers import third_party_models
from glassformer.extensions.wirings.search import SearchResult
from glassformer.runs import loading
from glassformer.runs.error_boundary import attempt
from glassformer.runs.measurement_jobs import begins_by_itself
from glassformer.runs.run_address import address
from glassformer.server.jobs import JobStatus
from glassformer.shared import drawing, menu, pairs
from glassformer.shared.controls import KEEP
from glassformer.shared.csv_export import Origin
from glassformer.shared.i18n import here, st, table
from glassformer.state import session
from glassformer.state.link import Link
from transformer.analysis.losses import Samples, samples_of
from transformer.checkpoint.listing import Entry
from transformer.checkpoint.load import Checkpoint
from transformer.errors import DataError
from transformer.i18n import Sentence, joined, say, say_n
from transformer.i18n.sentence import digits
from transformer.runs.interventions import parse

WANTED, PROBLEM = "examination_wanted", "examination_problem"
TEXTS, FORM, REPORTED = "examination_texts", "examination_form", "examination_reported"
WITH_THESE, WITH_EXAMPLES, AGAIN = "examine_these", "examine_examples", "examine_again"


@dataclass(frozen=True)
class ExaminationSettings:
    """What a session wants of a checkpoint."""

    given: Samples | None = None  # its own sentences; None for the examples
    reported: float | None = None  # the loss that the training reported; None where the session did not say it
    seed: int = 0  # which draw
    is_asked: bool = False  # whether a button was pressed, or that is left to the page
    is_stopped: bool = False  # whether the last examination was stopped


def wanted(checkpoint: Checkpoint) -> ExaminationSettings:
    """What the session wants of a checkpoint."""
    found: ExaminationSettings = st.session_state.get(WANTED, {}).get(checkpoint.content_hash, ExaminationSettings())
    return found


def want(content_hash: str, wish: ExaminationSettings) -> None:
    """Callback: want something else of a checkpoint."""
    st.session_state[WANTED] = {**st.session_state.get(WANTED, {}), content_hash: wish}
    st.session_state[PROBLEM] = None


def stop(asked: ExaminationRequest, wish: ExaminationSettings) -> None:
    """Callback: want an examination no more."""
    examinations().withdraw(asked, loading.visitor())
    want(asked.content_hash, replace(wish, is_asked=False, is_stopped=True))


def again(checkpoint: Checkpoint) -> None:
    """Draw the button that examines once more, with another draw."""
    wish = wanted(checkpoint)
    st.button(
        say("Examine again"),
        key=AGAIN,
        icon=":material/refresh:",
        on_click=want,
        args=(checkpoint.content_hash, replace(wish, seed=wish.seed + 1, is_asked=True, is_stopped=False)),
        help=say(
            "Repeats the tests with newly drawn random tokens and, if there are many sentences, with newly drawn "
            "sentences. The verdicts should stay the same."
        ),
    )


def own_sentences(checkpoint: Checkpoint, *, unfolded: bool) -> None:
    """Draw the box for the user's sentences, `unfolded` where there were no pairs to test the task."""
    which = checkpoint.content_hash
    name, typed = st.session_state.get(pairs.CARRIED) or ("", "")
    if name == session.asked().model and not st.session_state.get(TEXTS):
        st.session_state[TEXTS] = typed
        del st.session_state[pairs.CARRIED]  # who empties the box finds it empty
    with st.expander(say("Examine with your own sentences"), expanded=unfolded):
        with st.form(FORM, border=False):
            pairs.box(key=TEXTS, persist=KEEP)
            st.number_input(
                say("Loss reported in training"), key=REPORTED, min_value=0.0, max_value=100.0, value=None,
                format="%.6g", placeholder=say("nats per token"), persist_state=KEEP,
                help=say(
                    "Enter the loss on texts that were not used in training, without label smoothing. If the loss "
                    "measured here is much higher, something is computed differently than in training."
                ),
            )  # fmt: skip
            st.form_submit_button(say("Examine with these"), key=WITH_THESE, on_click=_take, args=(which,))
        said = say(
            "If you enter pairs of a source text and its correct output, the doctor also compares the model's "
            "output with the correct one. The sentences stay in this server's memory until newer examinations "
            "need the space."
        )
        st.caption(said)
        if wanted(checkpoint).given is not None:
            wish = ExaminationSettings(is_asked=True)
            st.button(say("Examine with the examples"), key=WITH_EXAMPLES, on_click=want, args=(which, wish))
        problem: Sentence | None = st.session_state.get(PROBLEM)
        if problem is not None:
            st.error(drawing.with_code(problem))


def _take(content_hash: str) -> None:
    """Callback: examine with the sentences in the box."""
    texts = pairs.with_tabs(st.session_state.get(TEXTS) or "")
    try:
        given = samples_of(texts, label=say("The sentences"))
        want(content_hash, ExaminationSettings(given, st.session_state.get(REPORTED), is_asked=True))
    except DataError as error:
        st.session_state[PROBLEM] = error.sentence


# ------------------------------------------------------------------------------------------------ the page


EXAMINE, STOP = "examine", "stop_examination"
LOOK_SECONDS: Final = 0.7
"""Between two looks at an examination under way: each runs the page's fragment, some milliseconds of work."""


def draw(checkpoint: Checkpoint) -> None:
    """Draw what is known of a checkpoint's health; small ones are examined without being asked to."""
    wish = wanted(checkpoint)
    asked = ExaminationRequest.of(checkpoint, wish.given, wish.seed, wish.reported)
    seen = _begun(checkpoint, asked, wish)
    if seen is None:
        _offer(checkpoint, wish)
    else:
        follow = st.fragment(_follow, run_every=LOOK_SECONDS if seen.is_under_way else None)
        follow(asked, wish, address(checkpoint, session.asked()), seen.is_under_way)
        if not seen.is_under_way:
            again(checkpoint)
    is_open = seen is not None and seen.result is not None and not seen.result.does_its_task
    own_sentences(checkpoint, unfolded=is_open and checkpoint.model.anatomy.gives_logits)


def draw_unopened(entry: Entry, ask: Callable[[], NoReturn]) -> NoReturn:
    """Draw what can be said of a model before its questions are answered, below those, which `ask` draws."""
    above, below = st.container(), st.container()
    given = session.answers_of(entry.name)
    imported = attempt(lambda: third_party_models.preview(entry, given))
    if imported is not None and imported.tensors is not None:
        report, tensors = imported.report, imported.tensors
        asked = ExaminationRequest(entry.title or entry.name, third_party_models.version(entry, given), ())
        with below:
            st.subheader(say("What can be said already"), anchor=False)
            seen = examinations().look(asked, loading.visitor()) or attempt(
                lambda: examinations().examine_unopened(asked, report, tensors, loading.visitor())
            )
            if seen is not None:
                follow = st.fragment(_follow, run_every=LOOK_SECONDS if seen.is_under_way else None)
                follow(asked, ExaminationSettings(), session.asked(), seen.is_under_way)
    with above:
        ask()


def _begun(checkpoint: Checkpoint, asked: ExaminationRequest, wish: ExaminationSettings) -> JobStatus | None:
    """How far the examination is, which begins now if it shall; None if it does not."""
    if wish.is_stopped:
        seen = examinations().look(asked)
        return seen if seen is not None and not seen.is_under_way else None
    seen = examinations().look(asked, loading.visitor())
    if seen is None and (wish.is_asked or begins_by_itself(checkpoint)):
        return attempt(lambda: examinations().examine(asked, checkpoint, loading.visitor()))
    return seen


def _offer(checkpoint: Checkpoint, wish: ExaminationSettings) -> None:
    numbers = checkpoint.config.count_parameters()
    if wish.is_stopped:
        st.info(say("The examination was stopped."), icon=":material/stop_circle:")
    elif not begins_by_itself(checkpoint):
        said = say(
            "This model has {n:,} parameters, so an examination may take a few minutes. It also waits for other "
            "visitors' runs.",
            n=numbers,
        )
        st.info(said, icon=":material/hourglass_top:")
    begun = ExaminationSettings(wish.given, wish.reported, wish.seed, is_asked=True)
    st.button(
        say("Examine"), key=EXAMINE, type="primary", icon=":material/stethoscope:",
        on_click=want, args=(checkpoint.content_hash, begun),
    )  # fmt: skip


def _follow(asked: ExaminationRequest, wish: ExaminationSettings, link: Link, was_under_way: bool) -> None:
    """Draw an examination as far as it is; while it is under way this runs again and again."""
    seen = examinations().look(asked, loading.visitor())
    if was_under_way and (seen is None or not seen.is_under_way):
        st.rerun()  # the page once more, which then looks no longer
    if seen is None:
        return
    report: Report | None = seen.result
    so_far: ExaminationProgress = seen.so_far or ExaminationProgress()
    if report is not None:
        _verdict(report)
    elif seen.state == "failed":
        st.error(say("The examination failed. Click “Examine again”."))
    else:
        _progress(seen, so_far, asked, wish)
    wrong(so_far.findings if report is None else report.findings, link, report)
    if report is not None:
        pair_by_pair(report, link)
        others(report.findings, link)
        offer(report)


def _verdict(report: Report) -> None:
    """Draw the sentence that sums up, and what the examination was made of."""
    said = drawing.plain(report.summary())
    draw = {"broken": st.error, "look": st.warning, "well": st.success}.get(report.health, st.info)
    draw(said, icon=":material/help:" if report.health == "not_tested" else ICONS[report.health])
    seconds = sum(one.seconds for one in report.findings)
    took = say_n(
        "{n} test in {seconds:.1f} seconds, {origin}.",
        "{n} tests in {seconds:.1f} seconds, {origin}.",
        len(report.findings),
        seconds=seconds,
        origin=report.sentences_said(),
    )
    more = say("The checkpoint has no examples. Enter your own sentences below to test more.")
    st.caption(took if report.n_sentences or report.asked else joined(" ", [took, more]))
    if not (report.does_its_task or report.asked):
        st.markdown(
            say("**Not tested: whether the model does its task.** Enter a few pairs below, each a source text with "
                "its correct output. Pairs can also reveal that the model was trained without the causal mask, or "
                "that a setting not stated in any file is wrong.")
        )  # fmt: skip


def _progress(
    seen: JobStatus, so_far: ExaminationProgress, asked: ExaminationRequest, wish: ExaminationSettings
) -> None:
    """Draw how far an examination is, and the button that stops it."""
    done, whole = len(so_far.findings), len(examinations().tests)
    if seen.state == "waiting":
        ahead = max(examinations().before(asked), 1)
        said = say_n("{n} examination is ahead of this one.", "{n} examinations are ahead of this one.", ahead)
    else:
        said = say("Test {n} of {most}: {title}", n=min(done + 1, whole), most=whole, title=so_far.testing)
    st.progress(done / max(whole, 1), text=drawing.plain(said))
    st.button(say("Stop"), key=STOP, icon=":material/stop:", on_click=stop, args=(asked, wish))


# ------------------------------------------------------------------------------------------------ findings

ICONS: Final[dict[Verdict, str]] = {
    "broken": ":material/error:",
    "look": ":material/visibility:",
    "well": ":material/check_circle:",
    "not_applicable": ":material/do_not_disturb_on:",
}
WRONG: Final[tuple[Verdict, ...]] = ("broken", "look")


def _counted(verdict: Verdict, n: int) -> Sentence:
    return say_n("{verdict}: {n} test", "{verdict}: {n} tests", n, verdict=capitalised(VERDICTS[verdict]))


def wrong(findings: Sequence[Finding], link: Link, report: Report | None = None) -> None:
    """Draw what is broken, then what is worth a look; the links keep the checkpoint of `link`."""
    for verdict in WRONG:
        found = [one for one in told_once(ordered(findings)) if one.verdict == verdict]
        if found:
            st.subheader(joined(" ", [ICONS[verdict], _counted(verdict, len(found))]), anchor=False)
            for one in found:
                _whole(one, link, report)


def pair_by_pair(report: Report, link: Link) -> None:
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
    names = ("source", "right", "written", "loss")
    columns = {name: [getattr(one, name) for one in report.pairs] for name in names}
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
    """Draw what is well and what is not applicable, folded, each in a few lines under the name of its area."""
    for verdict in ("well", "not_applicable"):
        found = [one for one in findings if one.verdict == verdict]
        if not found:
            continue
        with st.expander(_counted(verdict, len(found)), icon=ICONS[verdict]):
            for area, name in AREAS.items():
                of_area = [one for one in found if one.area == area]
                if of_area:
                    st.subheader(name, anchor=False)
                for one in of_area:
                    _line(one, link)


def _whole(finding: Finding, link: Link, report: Report | None) -> None:
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
        st.markdown(drawing.with_code(found.said))
        if found.code:
            _named(finding, report)
        st.caption(drawing.with_code(_held_against(finding)))
        if found.meaning:
            st.markdown(say("**What it means.** {text}", text=drawing.with_code(found.meaning)))
        if found.causes:
            st.markdown(say("**Usual causes:** {causes}", causes=drawing.with_code(found.causes)))
        if found.places:
            # Names are quoted, as they are data.
            named = [say("“{name}”", name=drawing.plain(name)) for name in found.places[:MOST_PLACES]]
            named += [say("and {n} more", n=found.more)] if found.more else []
            st.markdown(say("**Where.** {places}", places=joined(", ", named)))
        _way(finding, link)


def _way(finding: Finding, link: Link) -> None:
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


def _line(finding: Finding, link: Link) -> None:
    found = finding.measured
    line = say("**{title}.** {said}", title=drawing.plain(finding.title), said=drawing.with_code(found.said))
    with st.container(gap=None):
        st.markdown(joined(" ", [ICONS[finding.verdict], line]))
        if held := _held_against(finding):
            st.caption(drawing.with_code(held))
        _way(finding, link)


# ------------------------------------------------------------------------------------------------ where it shows


LABELS: Final[dict[PageName, Sentence]] = {
    "step": say("See it in {page}", page=say("Translate")),
    "attention": say("See it in {page}", page=say("Attention")),
    "positions": say("See it in {page}", page=say("Positions")),
    "masks": say("See it in {page}", page=say("Masks")),
    "inside": say("See it in {page}", page=say("Inside")),
    "checkpoints": say("See it in {page}", page=say("Checkpoints")),
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
    """A link from the open page to where something shows, without its decoding and changes but those it names."""
    names = ("kind", "layer", "head", "step", "tensor")
    looked_at: dict[str, Any] = {name: value for name in names if (value := getattr(shown, name)) is not None}
    if shown.panel and shown.page in _PANELS:
        looked_at[_PANELS[shown.page]] = shown.panel
    source = link.source if shown.source is None else shown.source
    return Link(
        model=link.model,
        revision=link.revision,
        answers=link.answers,
        source=source,
        reference=shown.reference,
        interventions=parse(shown.changes),
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


LOSSES = "wiring_losses"
NOTHING = "–"  # an output without text


def _named(finding: Finding, report: Report | None) -> None:
    """Draw the lines that are probably wrong beside those that are right, and what they do to the pairs."""
    for wrong, right in finding.measured.code:
        drawing.codes((say("In the code, probably:"), wrong), (say("It should be:"), right))
    if report is not None and finding.test == "wiring":
        _losses(report.search)
        _example(report)


def _losses(found: SearchResult | None) -> None:
    """Draw the loss on pairs as the model stands and with the mistake, as two bars."""
    if found is None or not found.n_pairs or found.standing is None or found.best is None:
        return
    names = [say("As it stands"), say("With it")]
    losses = [found.standing.plain.mean, found.best.plain.mean]
    drawn = bars(
        say("Loss on the pairs, without the mistake and with it"),
        Axis(say("Model"), names),
        Numbers(say("loss per token, in nats"), np.array(losses), ".3g"),
        ends=lambda i: formatted(losses[i], ".3g"),
    )
    drawing.chart(drawn["spec"], key=LOSSES, alt=drawn["alt"], how_to_read="")


def _example(report: Report) -> None:
    """Draw one pair, as the model stands and with the mistake."""
    if report.example is None:
        return
    labels = say("Source"), say("Right"), say("As it stands"), say("With the mistake")
    with st.container(border=True, gap=None):
        for label, text in zip(labels, report.example, strict=True):
            shown = drawing.plain(text) if text.strip() else NOTHING
            st.markdown(say("**{label}:** “{text}”", label=label, text=shown))
