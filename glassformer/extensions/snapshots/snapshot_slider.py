"""Slider over a checkpoint's training snapshots (custom component): loss and score of each; callbacks to choose."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Final

from glassformer.components.custom_component import Element, is_count, told
from glassformer.frame.source_box import follow_soon
from glassformer.runs import loading
from glassformer.runs.open_run import STEPPER_RUN
from glassformer.shared import cover_box, drawing
from glassformer.shared.i18n import st
from glassformer.shared.page_blocks import PageBlocks
from glassformer.state import session
from glassformer.state.view import MAIN, Slot
from transformer.checkpoint.curve import load_curve
from transformer.checkpoint.listing import Entry, Signature, signature
from transformer.checkpoint.load import CARD, Checkpoint, card_of
from transformer.checkpoint.save import CURVE
from transformer.checkpoint.snapshots import SnapshotInfo, at_step
from transformer.errors import CheckpointError
from transformer.files.untrusted_folder import FolderFiles
from transformer.i18n import Sentence, joined, say

_MOMENTS = Element("moments")


@dataclass(frozen=True)
class Stop:
    """One stop."""

    step: int | None  # of the training; None for the checkpoint itself
    name: str  # its label
    told: str  # how good the model was


def moments_view(
    stops: Sequence[Stop],
    *,
    key: str,  # names this place on the page
    of: str,  # the checkpoint
    at: int,  # the stop that is shown
    revision: int,  # a new one moves the slider, for example after the browser's Back button
    on_move: Callable[[], None],  # `moved` then says where
) -> None:
    """Draw it."""
    payload = {"of": of, "stops": [asdict(stop) for stop in stops], "at": at, "revision": revision}
    _MOMENTS.draw(payload, key=key, hears={"move": on_move})


def moved(key: str, *, of: str) -> tuple[int | None, bool] | None:
    """The step that the user moved a key's slider to, as of `Stop`, and whether the next stop follows automatically.

    None if that is not a snapshot of this checkpoint.
    """
    said = told(key, "move")
    if not isinstance(said, dict) or said.get("of") != of:
        return None
    step = said.get("step")
    return (step, said.get("passing") is True) if step is None or is_count(step) else None


NO_SNAPSHOTS: Final = say(
    "This checkpoint has no snapshots of its training. A training with the option `--snapshots` keeps some."
)
MOVED: Final = "moved_to_snapshot"  # in the session: a click has just chosen another snapshot
SLIDER: Final = "training_time"
_AT: Final = "_at"  # after a slider's key: the name that it was drawn for last, and its revision
_WISHED: Final = "wished_step"  # the step to select, if a snapshot's output is long enough


def slider(name: str, *, key: str, take: Callable[[str], None]) -> None:
    """Draw the slider, if the checkpoint has snapshots.

    `name` is the shown checkpoint's or snapshot's, `key` identifies this place on the page, and `take` is called with
    the chosen name before the page reruns.
    """
    whole = loading.whole(name)
    if whole is None:
        return
    found, odd = loading.moments(whole)
    if found:
        stops = [Stop(moment.step, _called(moment), _told(moment, whole)) for moment in found]
        names = [*(at_step(whole.name, moment.step) for moment in found), whole.name]
        sign = signature(whole.folder, (CURVE, CARD))
        # A lesson may ask which epoch was kept.
        last = SnapshotInfo(step=0) if cover_box.waits() else _kept(str(whole.folder), str(whole.root), sign)
        itself = say("The checkpoint itself (epoch {epoch})", epoch=last.epoch)
        stops.append(Stop(None, itself if last.epoch else say("The checkpoint itself"), _told(last, whole)))
        before, revision = st.session_state.get(f"{key}{_AT}") or ("", 0)
        if before != name:  # moves the browser's slider
            revision = int(1000 * time.time())
            st.session_state[f"{key}{_AT}"] = (name, revision)
        at = names.index(name) if name in names else len(stops) - 1
        moments_view(
            stops, key=key, of=whole.name, at=at, revision=revision, on_move=partial(_move, key, whole.name, take)
        )
    for note in odd:
        st.caption(drawing.plain(note))


def _move(key: str, whole: str, take: Callable[[str], None]) -> None:
    """Callback: the slider was moved."""
    move = moved(key, of=whole)
    if move is None:
        return
    step, is_passing = move
    name = whole if step is None else at_step(whole, step)
    _, revision = st.session_state.get(f"{key}{_AT}") or ("", 0)
    st.session_state[f"{key}{_AT}"] = (name, revision)  # the browser's slider is already there
    session.pass_by(is_passing)
    take(name)


def choose(name: str) -> None:
    """Callback: select another snapshot; at the same step, if its output is long enough."""
    kept, here = st.session_state.get(f"{MAIN}{STEPPER_RUN}"), session.view().step
    wished = st.session_state.get(_WISHED, 0)
    is_at_end = kept is not None and here == len(kept[1].target) - 1
    step = wished if is_at_end and wished > here else here
    st.session_state[_WISHED] = step
    session.replace(MAIN, step=step)
    session.change_moment(name)


def move_to(step: int) -> None:
    """Callback: select another snapshot of the same training, at the same place."""
    whole = loading.whole(str(st.session_state.get(session.MODEL)))
    if whole is not None:
        choose(at_step(whole.name, step))
        st.session_state[MOVED] = True


def whole_page_if_moved() -> None:
    """Rerun the whole page after such a click, which by default reruns only the picture's fragment."""
    if st.session_state.pop(MOVED, False):
        st.rerun()


def _choose_in_page(name: str) -> None:
    choose(name)
    follow_soon()


def _called(moment: SnapshotInfo) -> Sentence:
    if moment.step == 0:
        return say("Step 0 (before the training)")
    return say("Step {step:,} (epoch {epoch})", step=moment.step, epoch=moment.epoch)


def _told(moment: SnapshotInfo, whole: Entry) -> Sentence:
    """The model's quality: BLEU for a language, else the share of exactly right outputs."""
    parts: list[Sentence] = []
    if moment.loss is not None:
        parts.append(say("Loss {loss:.2f}", loss=moment.loss))
    if moment.dev_loss is not None:
        parts.append(say("dev {loss:.2f}", loss=moment.dev_loss))
    if whole.language and moment.dev_bleu is not None:
        parts.append(say("BLEU {bleu:.1f}", bleu=moment.dev_bleu))
    elif moment.dev_exact is not None:
        parts.append(say("exact {share:.0%}", share=moment.dev_exact))
    return joined(" · ", parts)


@st.cache_resource(max_entries=64, show_spinner=False)
def _kept(folder: str, root: str, sign: Signature) -> SnapshotInfo:
    """The learning curve's row for the checkpoint's epoch: by its card, or else the best one."""
    try:
        curve = load_curve(Path(folder), inside=Path(root))
        said = card_of(FolderFiles(Path(folder), inside=Path(root)))[0].training.get("epochs")
    except CheckpointError:
        return SnapshotInfo(step=0)
    epoch = None if curve is None else said if said in curve.epochs else curve.best_epoch()
    if curve is None or epoch is None:
        return SnapshotInfo(step=0)
    place = curve.epochs.index(epoch)
    values = {name: column[place] for name, column in curve.columns.items() if not math.isnan(column[place])}
    loss, dev_loss, bleu, exact = map(values.get, ("loss", "dev_loss", "dev_bleu", "dev_exact"))
    return SnapshotInfo(step=0, epoch=epoch, loss=loss, dev_loss=dev_loss, dev_bleu=bleu, dev_exact=exact)


class SnapshotBlocks(PageBlocks):
    """The slider, in the sidebar and on the page."""

    def under_choice(self, name: str, *, slot: Slot = MAIN, take: Callable[[str], None] | None = None) -> None:
        """The slider of the checkpoint that is chosen."""
        if slot != MAIN and take is not None:
            slider(name, key=f"{slot}{SLIDER}", take=take)
            return
        with st.container(key=f"{SLIDER}_place", gap=None):
            slider(name, key=SLIDER, take=choose)

    def under_source(self, checkpoint: Checkpoint) -> None:
        """The slider once more: on a telephone and in a presentation there is no sidebar beside the page."""
        name = st.session_state.get(session.MODEL) or checkpoint.name
        slider(name, key=f"{SLIDER}_page", take=_choose_in_page)


BLOCKS = SnapshotBlocks()
