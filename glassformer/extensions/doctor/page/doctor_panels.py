"""The page *Doctor*: what the session wants examined, what is wrong, what is well, and how far an examination is."""

from dataclasses import dataclass, replace
from typing import Final

from glassformer.extensions.doctor.examinations import ExaminationProgress, ExaminationRequest, examinations
from glassformer.extensions.doctor.library.report import Report
from glassformer.extensions.doctor.page import findings
from glassformer.runs import loading
from glassformer.runs.measurement_jobs import begins_by_itself
from glassformer.runs.open_run import address, attempt
from glassformer.server.jobs import JobStatus
from glassformer.shared import drawing, pairs
from glassformer.shared.controls import KEEP
from glassformer.shared.i18n import st
from glassformer.state import session
from glassformer.state.link import Link
from transformer.checkpoint.load import Checkpoint
from transformer.errors import DataError
from transformer.i18n import Sentence, joined, say, say_n
from transformer.trying.losses import Samples, samples_of

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
    """Draw the button that begins an examination."""
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
    findings.wrong(so_far.findings if report is None else report.findings, link)
    if report is not None:
        findings.pairs(report, link)
        findings.others(report.findings, link)
        findings.offer(report)


def _verdict(report: Report) -> None:
    """Draw the sentence that sums up, and what the examination was made of."""
    said = drawing.plain(report.summary())
    draw = {"broken": st.error, "look": st.warning, "well": st.success}.get(report.health, st.info)
    draw(said, icon=":material/help:" if report.health == "not_tested" else findings.ICONS[report.health])
    seconds = sum(one.seconds for one in report.findings)
    took = say_n(
        "{n} test in {seconds:.1f} seconds.", "{n} tests in {seconds:.1f} seconds.", len(report.findings),
        seconds=seconds,
    )  # fmt: skip
    st.caption(joined(" ", [took, _sentences(report)]))
    if not report.does_its_task:
        st.markdown(
            say("**Not tested: whether the model does its task.** Enter a few pairs below, each a source text with "
                "its correct output. Pairs can also reveal that the model was trained without the causal mask, or "
                "that a setting not stated in any file is wrong.")
        )  # fmt: skip


def _sentences(report: Report) -> Sentence:
    """Which sentences were used."""
    n = report.n_sentences
    if not n:
        return say("The checkpoint has no examples. Enter your own sentences below to test more.")
    if report.origin == "given":
        return say_n("{n} sentence of your own was used.", "{n} sentences of your own were used.", n)
    return say_n(
        "{n} example sentence from the checkpoint was used.", "{n} example sentences from the checkpoint were used.", n
    )


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
