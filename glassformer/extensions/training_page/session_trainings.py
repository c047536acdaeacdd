"""Trainings as checkpoints of the app: names in URLs, lookup, the session's own, expiry sweep, menu `Source`.

A name is `training:` and the training's unguessable token; one of several models has its own name after that. During
training its checkpoint can be opened like any other, and changes as soon as a better one is written.
"""

import asyncio
import atexit
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from glassformer.extensions.training_page.trainings import Training, Trainings
from glassformer.runs.sources import Source
from glassformer.server import replicas, server_options
from glassformer.server.model_runner import BusyError
from glassformer.server.parts import ServerPart
from glassformer.shared.i18n import st
from glassformer.shared.page_blocks import PageBlocks
from glassformer.state.link import Link
from glassformer.state.view import MAIN, Slot
from transformer.checkpoint.listing import Entry, entry_at
from transformer.checkpoint.snapshots import AT, steps
from transformer.i18n import Sentence, say

NAME: Final = "training:"
OWN: Final = "own_trainings"
SWEEP_SECONDS: Final = 60.0
GONE: Final = say(
    "The training is no longer on this server: the server was restarted, or nobody looked at the training for some "
    "hours."
)


@st.cache_resource(show_spinner=False)
def trainings() -> Trainings:
    """The trainings of this server, or of all replicas."""
    return Trainings(shared=replicas.folder("trainings"))


def is_name(name: str) -> bool:
    """Whether a name in a URL is a training's."""
    return name.startswith(NAME)


def name_of(training: Training, model: str | None = None) -> str:
    """Its name in a URL, or that of one of its models."""
    return f"{NAME}{training.token}" + (f":{model}" if model not in (None, training.plan.name) else "")


def find(name: str) -> Training | None:
    """The training of a name in a URL, or of one of its snapshots; None if it does not exist or is gone."""
    if not is_name(name) or not server_options.trains():
        return None
    return trainings().find(re.split(f"[:{AT}]", name.removeprefix(NAME))[0])


def at(name: str) -> Entry | None:
    """The checkpoint of a training, also by the name of one of its snapshots; None before the first is written.

    Of several, the one that the name says, or else the newest.
    """
    training = find(name)
    if training is None:
        return None
    whole, there = name.partition(AT)[0], training.models
    out = there.get(whole.removeprefix(NAME).partition(":")[2] or next(reversed(there), ""))
    if out is None:
        return None
    entry = entry_at(out, whole, training.folder)
    return None if entry.error is not None else entry


def is_under_way(training: Training) -> bool:
    """Whether there is more to come."""
    return trainings().look(training).is_under_way


def check_none_goes_on() -> None:
    """Look whether the session may begin one. Raises `BusyError`: one that it began is under way."""
    mine = (find(name) for name in st.session_state.get(OWN, ()))
    if any(training is not None and is_under_way(training) for training in mine):
        raise BusyError("You already have a training that is waiting or running. Stop it first, or wait for its end.")


def keep(training: Training) -> str:
    """Callback: list a training among the session's own; its name."""
    name = name_of(training)
    st.session_state[OWN] = (*st.session_state.get(OWN, ()), name)
    return name


def forget(name: str) -> None:
    """Callback: end a training, and remove it."""
    training = find(name)
    if training is not None:
        trainings().forget(training)
    st.session_state[OWN] = tuple(one for one in st.session_state.get(OWN, ()) if one != name)


class TrainingSource(Source):
    """Checkpoints of trainings, including running ones."""

    def own(self) -> dict[str, Entry]:
        """What this session trains or has trained here, and is still there, by name."""
        mine: tuple[str, ...] = st.session_state.get(OWN, ())
        there = {name: training for name in mine if (training := find(name)) is not None}
        if len(there) < len(mine):
            st.session_state[OWN] = tuple(there)
        models = [name_of(training, model) for training in there.values() for model in training.models]
        return {name: entry for name in models if (entry := at(name)) is not None}

    def folder(self, name: str) -> Entry | None:
        """What a training has written."""
        return at(name)

    def label(self, entry: Entry) -> str | None:
        """That it is trained here."""
        return say("{title} (trained here)", title=entry.title) if is_name(entry.name) else None

    def gone(self, name: str, instead: str) -> Sentence | None:
        """Trainings are kept for a while."""
        return replicas.gone(GONE) if is_name(name) else None

    def changes(self, name: str) -> bool:
        """A running training writes better checkpoints."""
        return is_name(name)


class TrainingServer(ServerPart):
    """Trainings that users started."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Remove trainings without views while the server runs, and end and remove all at the end."""
        if not server_options.trains():
            yield
            return
        atexit.register(trainings().close)  # a server that is not asked to end in order
        sweeping = asyncio.create_task(_sweep())
        try:
            yield
        finally:
            sweeping.cancel()
            await asyncio.to_thread(trainings().close)


async def _sweep() -> None:
    while True:
        await asyncio.sleep(SWEEP_SECONDS)
        await asyncio.to_thread(trainings().sweep)


GROWS_SECONDS: Final = 3.0  # between checks of a running training


class TrainingBlocks(PageBlocks):
    """Nothing that is seen."""

    def leads_to(self, path: str, run: Link) -> Link | None:
        """To the cards that start a training; an address without a part shows curves, as it always has."""
        return replace(run, view=run.view.but(training_panel="watch")) if path == "training" else None

    def under_choice(self, name: str, *, slot: Slot = MAIN, take: Callable[[str], None] | None = None) -> None:
        """Have the page drawn again when the training of the main slot has another snapshot, or has ended."""
        training = find(name) if slot == MAIN else None
        if training is not None and is_under_way(training):
            st.fragment(_look_for_more, run_every=GROWS_SECONDS)(name, _n_steps(training))


def _n_steps(training: Training) -> int:
    """How many snapshots all its models have."""
    return sum(len(steps(out)) for out in training.outs.values())


def _look_for_more(name: str, drawn: int) -> None:
    training = find(name)
    if training is None or _n_steps(training) != drawn or not is_under_way(training):
        st.rerun()


SOURCE, SERVER, BLOCKS = TrainingSource(), TrainingServer(), TrainingBlocks()
