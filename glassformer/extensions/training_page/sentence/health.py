"""What the doctor says of each snapshot, examined one after the other in the background when a button asks for it."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from glassformer.extensions.snapshots.growing import name_here, snapshot_of
from glassformer.runs import loading
from glassformer.runs.attempt import Examiner, attempt, examiner
from glassformer.runs.measured import LOOK_SECONDS, studies
from glassformer.server.jobs import Job, Seen
from glassformer.shared.door import st
from transformer.checkpoint.load import Checkpoint
from transformer.checkpoint.snapshots import Moment
from transformer.errors import GlassformerError
from transformer.i18n import Sentence, joined, say, say_n


@dataclass(frozen=True)
class Verdicts:
    """What was found so far: of each snapshot, by its step, how many tests say what."""

    whole: int  # how many snapshots there are
    counts: Mapping[int, tuple[int, int, int] | None]  # broken, worth a look, well; None if it cannot be opened

    @property
    def done(self) -> int:
        """Those that were examined."""
        return len(self.counts)

    @property
    def nbytes(self) -> int:
        """Memory, about."""
        return 200 * self.whole

    def said(self) -> dict[int, Sentence]:
        """A verdict by the step."""
        return {step: _said(counts) for step, counts in self.counts.items()}


def verdicts(checkpoint: Checkpoint, moments: Sequence[Moment]) -> Verdicts | None:
    """What the doctor has said so far; None if nobody has asked."""
    seen = studies().look(_key(checkpoint, moments), loading.visitor())
    found: Verdicts | None = None if seen is None else seen.result or seen.so_far
    return found


def ask(checkpoint: Checkpoint, moments: Sequence[Moment], *, n_drawn: int) -> None:
    """Draw the button that asks the doctor, or how far that is; the page is drawn again as more is known."""
    key, by = _key(checkpoint, moments), examiner()
    seen = studies().look(key, loading.visitor())
    if by is None or (seen is not None and seen.state == "done"):
        return
    if seen is not None and seen.is_under_way:
        st.fragment(_follow, run_every=LOOK_SECONDS)(key, n_drawn)
        return
    begin = partial(_begin, key, partial(_examine, by, name_here(), checkpoint, tuple(moments)))
    label = say("Ask the doctor about each snapshot")
    st.button(label, key="examine_snapshots", icon=":material/stethoscope:", on_click=begin)


def _begin(key: Hashable, work: partial[Verdicts]) -> None:
    """Callback: have all of them examined."""
    attempt(lambda: studies().ask(key, work, visitor=loading.visitor()))


def _follow(key: Hashable, n_drawn: int) -> None:
    """Draw how far it is; runs again and again."""
    seen: Seen | None = studies().look(key, loading.visitor())
    found: Verdicts | None = None if seen is None else seen.so_far
    if seen is None or not seen.is_under_way or (found is not None and found.done > n_drawn):
        st.rerun()
        return
    done, whole = (found.done, found.whole) if found is not None else (0, 0)
    said = say("The doctor examines each snapshot: {done} of {whole}", done=done, whole=whole)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.progress(done / whole if whole else 0.0, text=said)
        stop = partial(studies().withdraw, key, loading.visitor())
        st.button(say("Stop"), key="stop_examining_snapshots", icon=":material/stop:", on_click=stop)


def _key(checkpoint: Checkpoint, moments: Sequence[Moment]) -> Hashable:
    return "health", str(checkpoint.folder), tuple(moments)


def _examine(by: Examiner, name: str, checkpoint: Checkpoint, moments: Sequence[Moment], job: Job) -> Verdicts:
    """The work of a job: one examination after the other, each in its turn among those of other visitors."""
    found: dict[int, tuple[int, int, int] | None] = {}
    for moment in moments:
        job.tell(Verdicts(len(moments), dict(found)))
        job.pause()
        try:
            found[moment.step] = by.counts(snapshot_of(name, checkpoint, moment.step), job)
        except GlassformerError:
            found[moment.step] = None
    return Verdicts(len(moments), found)


def _said(counts: tuple[int, int, int] | None) -> Sentence:
    if counts is None:
        return say("could not be examined")
    broken, look, well = counts
    parts: list[Sentence] = [say_n("{n} test failed", "{n} tests failed", broken)] if broken else []
    parts += [say("{n} worth a look", n=look)] if look else []
    return joined(", ", [*parts, say("{n} well", n=well)])
