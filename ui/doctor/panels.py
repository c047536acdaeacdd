"""The page *Doctor*: the sentence that sums up, what is wrong, what is well, and how far an examination is."""

from __future__ import annotations

from typing import Final

from transformer.checkpoint.load import Checkpoint
from transformer.doctor.whole import Report
from ui.doctor import asking, findings, saved
from ui.doctor.asking import Wanted
from ui.doctor.examinations import Asked, Seen
from ui.runs import loading
from ui.runs.attempt import attempt
from ui.runs.open_run import address
from ui.shared import drawing
from ui.shared.door import st
from ui.state import session
from ui.state.link import Link
from words import Sentence, joined, say, say_n

EXAMINE, STOP = "examine", "stop_examination"
LOOK_SECONDS: Final = 0.7
"""Between two looks at an examination under way: each runs the page's fragment, some milliseconds of work."""


def draw(checkpoint: Checkpoint) -> None:
    """Draw what is known of a checkpoint's health; small ones are examined without being asked to."""
    wish = asking.wanted(checkpoint)
    asked = Asked.of(checkpoint, wish.given, wish.seed, wish.reported)
    seen = _begun(checkpoint, asked, wish)
    if seen is None:
        _offer(checkpoint, wish)
    else:
        follow = st.fragment(_follow, run_every=LOOK_SECONDS if seen.is_under_way else None)
        follow(asked, wish, address(checkpoint, session.asked()), seen.is_under_way)
        if not seen.is_under_way:
            asking.again(checkpoint)
    is_open = seen is not None and seen.report is not None and not seen.report.does_its_task
    asking.own_sentences(checkpoint, unfolded=is_open and checkpoint.model.anatomy.gives_logits)


def _begun(checkpoint: Checkpoint, asked: Asked, wish: Wanted) -> Seen | None:
    """How far the examination is, which begins now if it shall; None if it does not."""
    if wish.is_stopped:
        return asking.examinations().kept(asked)
    seen = asking.examinations().look(asked, loading.visitor())
    if seen is None and (wish.is_asked or asking.begins_by_itself(checkpoint)):
        return attempt(lambda: asking.examinations().ask(asked, checkpoint, loading.visitor()))
    return seen


def _offer(checkpoint: Checkpoint, wish: Wanted) -> None:
    """Draw the button that begins an examination."""
    numbers = checkpoint.config.count_parameters()
    if wish.is_stopped:
        st.info(say("The examination was stopped."), icon=":material/stop_circle:")
    elif not asking.begins_by_itself(checkpoint):
        said = say("With {n:,} parameters an examination may take some minutes; other visitors go first.", n=numbers)
        st.info(said, icon=":material/hourglass_top:")
    begun = Wanted(wish.given, wish.reported, wish.seed, is_asked=True)
    st.button(
        say("Examine"), key=EXAMINE, type="primary", icon=":material/stethoscope:",
        on_click=asking.want, args=(checkpoint.content_hash, begun),
    )  # fmt: skip


def _follow(asked: Asked, wish: Wanted, link: Link, was_under_way: bool) -> None:
    """Draw an examination as far as it is; while it is under way this runs again and again."""
    seen = asking.examinations().look(asked, loading.visitor())
    if was_under_way and (seen is None or not seen.is_under_way):
        st.rerun()  # the page once more, which then looks no longer
    if seen is None:
        return
    if seen.report is not None:
        _verdict(seen.report)
    elif seen.state == "failed":
        st.error(say("The examination could not be made. Examine again."))
    else:
        _progress(seen, asked, wish)
    findings.wrong(seen.findings, link)
    if seen.report is not None:
        findings.pairs(seen.report, link)
        findings.others(seen.findings, link)
        saved.offer(seen.report)


def _verdict(report: Report) -> None:
    """Draw the sentence that sums up, and what the examination was made of."""
    said = drawing.plain(report.summary())
    if report.health == "broken":
        st.error(said, icon=findings.ICONS["broken"])
    elif report.health == "look":
        st.warning(said, icon=findings.ICONS["look"])
    elif report.health == "well":
        st.success(said, icon=findings.ICONS["well"])
    else:
        st.info(said, icon=":material/help:")
    seconds = sum(one.seconds for one in report.findings)
    took = say_n(
        "{n} test in {seconds:.1f} seconds.", "{n} tests in {seconds:.1f} seconds.", len(report.findings),
        seconds=seconds,
    )  # fmt: skip
    st.caption(joined(" ", [took, _sentences(report)]))
    if not report.does_its_task:
        st.markdown(
            say("**Not tested: whether it does its task.** Give a few pairs of source and right output below; they "
                "also show a training without the causal mask, and settings that no file says.")
        )  # fmt: skip


def _sentences(report: Report) -> Sentence:
    """Which sentences were used."""
    n = report.n_sentences
    if not n:
        return say("The checkpoint has no examples: give sentences of your own below, and more is tested.")
    if report.origin == "given":
        return say_n("{n} sentence of yours was used.", "{n} sentences of yours were used.", n)
    return say_n(
        "{n} sentence of the checkpoint's examples was used.",
        "{n} sentences of the checkpoint's examples were used.",
        n,
    )


def _progress(seen: Seen, asked: Asked, wish: Wanted) -> None:
    """Draw how far an examination is, and the button that stops it."""
    done = len(seen.findings)
    if seen.state == "waiting":
        said = say_n(
            "{n} examination comes before this one.", "{n} examinations come before this one.", max(seen.ahead, 1)
        )
    else:
        said = say("Test {n} of {most}: {title}", n=min(done + 1, seen.whole), most=seen.whole, title=seen.testing)
    st.progress(done / max(seen.whole, 1), text=drawing.plain(said))
    st.button(say("Stop"), key=STOP, icon=":material/stop:", on_click=asking.stop, args=(asked, wish))
