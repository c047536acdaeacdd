"""Two runs to compare: links, the second as a difference in query parameters, `Pair`, outputs scored by the other.

do=zero-cross.3.1                the same query without its changes, and with them
b=src%3DI+like+tea               the URL's sentence, and another one
b=model%3Den-fr                  the URL's checkpoint, and another one
b=forced%3D5.17                  the model's own choice, and a branch of it
b=kind%3Dcross%26layer%3D3%26head%3D1    the current view, and another head
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Generic, Literal, TypeVar

from glassformer.extensions.what_if.two_runs import Crossed, crossed, read_output, share_vocabulary
from glassformer.runs.viewed_run import ViewedRun, VisibleTrace
from glassformer.server.model_runner import MAP_BYTES
from glassformer.state.fields import Look, choice
from glassformer.state.link import LOOKED_AT, NAMES, STEP, Link, read_link, read_nested, write_link, write_nested
from glassformer.state.view import MAIN, SECOND, Slot
from transformer.checkpoint.snapshots import split
from transformer.i18n import say
from transformer.runs.trace import Trace

Compared = Literal["auto", "changed", "sentences", "checkpoints", "branches", "heads", "ways"]


class WhatIfLook(Look):
    """View state of the page Compare."""

    compared: Compared = choice("compare", "auto")  # "auto" for the link's second run


OF: Final[dict[Compared, tuple[str, ...]]] = {
    "checkpoints": ("model", "rev", "answers"),
    "sentences": ("src",),
    "ways": ("how", "beam", "lp", "temp", "k", "p", "seed", "max", "do"),
    "branches": ("forced", "result"),
    "heads": LOOKED_AT,
}
"""What the second run of each comparison differs in; where it differs in several, the first one here names it."""

HEADS: Final = "attention"  # the page on which a selected head is the subject
_BELONGS: Final[dict[str, tuple[str, ...]]] = {
    "rev": ("model",),
    "answers": ("model",),
    "do": ("whole",),
    "forced": ("whole", "src"),
    "result": ("whole", "src"),
    "ref": ("src",),
}
"""What belongs to one model, to one whole training, or to one sentence: a run of another does not take it over."""
_FIELDS: Final = {"rev": "revision", "answers": "answers", "do": "interventions", "forced": "forced",
                  "result": "hypothesis", "ref": "reference"}  # fmt: skip


def comparing(link: Link, *, with_: Link | None = None) -> Link:
    """The link that opens the page Compare, for `menu.link`.

    The first run is on the left, `with_` on the right; None if it is not chosen yet. If the two differ only in that one
    of them has no interventions, that one is on the left.
    """
    link = replace(link, beside="", view=link.view.but(compared="auto"))
    if with_ is None:
        return link
    said = differences(link, with_)
    if set(said) == {"do"} and not (link.interventions and with_.interventions):
        return replace(link, interventions=link.interventions or with_.interventions, hypothesis=with_.hypothesis)
    return replace(link, beside=write_nested(said))


def of_what_is_looked_at(link: Link, page: str) -> Link:
    """What the menu leads to: a changed run and its control, a branch and the own choice, a head and another.

    The link is as the page publishes it. Without any of these, Compare asks for a choice.
    """
    link = replace(link, job="", beside="", view=link.view.but(query=None, key=None, compared="auto"))
    if link.interventions:
        return comparing(link)
    if link.forced:
        return comparing(replace(link, forced=(), hypothesis=0), with_=link)
    if split(link.model):  # what became of it
        return comparing(link, with_=replace(link, model=_whole(link.model), revision=""))
    if page == HEADS and link.view.layer is not None and link.view.head is not None:
        said = {"kind": link.view.kind, "layer": str(link.view.layer + 1), "head": str(link.view.head + 1)}
        return replace(link, beside=write_nested(said), view=link.view.but(compared="heads"))
    return link


def differences(first: Link, second: Link) -> dict[str, str]:
    """A second run's difference, as query parameters; the step is the first run's."""
    here, there = write_link(replace(first, beside="")), write_link(replace(second, beside=""))
    names = {name for name in NAMES if name != STEP and here.get(name) != there.get(name)}
    changed = names | {"whole"} if _whole(first.model) != _whole(second.model) else names
    own = {name for name, of in _BELONGS.items() if changed & set(of)}  # not inherited, so it is repeated
    names = (names - {"rev", "answers"}) if "model" not in names else names
    return {name: there.get(name, "") for name in NAMES if name in names or (name in own and name in there)}


def second_of(link: Link) -> tuple[Link, tuple[str, ...]]:
    """The second run of a link, and a note for everything in it that had to be put right."""
    said = read_nested(link.beside) or {}
    first = write_link(replace(link, beside="", tried=(), job="", companions=None))
    both = {name: (value,) for name, value in {**first, **said}.items() if value or name not in said}
    second, notes = read_link(both)
    models = link.model, second.model
    pairs = {"model": models, "whole": tuple(map(_whole, models)), "src": (link.source, second.source)}
    changed = {name for name, (old, new) in pairs.items() if old != new}
    gone = {name for name, of in _BELONGS.items() if changed & set(of) and not said.get(name)}
    own = Link()
    second = replace(second, **{field: getattr(own, field) for name, field in _FIELDS.items() if name in gone})
    return second, tuple(say("In the second run: {note}", note=note) for note in notes)


def _whole(model: str) -> str:
    """The checkpoint of a snapshot; any other name unchanged."""
    named = split(model)
    return model if named is None else named[0]


def control_of(link: Link) -> Link:
    """The same run with nothing changed inside the model, and without a second run."""
    return replace(link, interventions=(), beside="", tried=())


def settled(link: Link) -> tuple[Compared, tuple[str, ...]]:
    """What a link compares, never "auto", and a note if what it says contradicts itself."""
    said, asked = read_nested(link.beside) or {}, link.view.of(WhatIfLook).compared
    found = next((one for one, names in OF.items() if any(name in said for name in names)), None)
    if asked == "auto":
        return found or "changed", ()
    if found is None or (asked != "changed" and any(name in said for name in OF[asked])):
        return asked, ()
    note = say(
        "The link names a comparison that does not match its second run, so the page compares what actually "
        "differs between the two runs."
    )
    return found, (note,)


def with_said(text: str, **changes: str | None) -> str:
    """A second run's difference, changed, by the names of `nested.NAMES`; None removes a name."""
    said = {**(read_nested(text) or {}), **changes}
    return write_nested({name: value for name, value in said.items() if value is not None})


_Run = TypeVar("_Run", bound=ViewedRun, covariant=True)


@dataclass(frozen=True)
class Pair(Generic[_Run]):
    """Two runs beside each other."""

    compared: Compared  # what is compared; never "auto"
    left: _Run  # one of them is drawn in the main slot, the other one in the second
    right: _Run

    @property
    def main(self) -> _Run:
        """The run of the main slot, whose step is in the page's URL."""
        return self.left if self.left.slot == MAIN else self.right

    @property
    def second(self) -> _Run:
        """The other one."""
        return self.right if self.left.slot == MAIN else self.left

    @property
    def leads(self) -> _Run:
        """The longer run, whose stepper has the buttons because it reaches every step of both."""
        return self.second if self.second.trace.n_steps > self.main.trace.n_steps else self.main

    @property
    def slot(self) -> Slot:
        """As of `HasSteps`."""
        return self.leads.slot

    @property
    def runs(self) -> tuple[_Run, _Run]:
        """As of `HasSteps`."""
        return self.left, self.right

    @property
    def together(self) -> partial[Any]:
        """As of `HasSteps`."""
        return partial(Pair, self.compared)

    @property
    def writes(self) -> bool:
        """Whether both have an output."""
        return bool(self.left.trace.n_steps and self.right.trace.n_steps)

    @property
    def is_one_run(self) -> bool:
        """Whether both sides show the same run, and differ only in the view."""
        return self.left.trace.query == self.right.trace.query

    @property
    def is_one_model(self) -> bool:
        """Whether both are outputs of one model for one source, with equal predictions after equal pieces."""
        left, right = self.left.trace, self.right.trace
        same = left.query.checkpoint == right.query.checkpoint and left.src_ids == right.src_ids
        return same and left.query.interventions == right.query.interventions

    @property
    def share_vocabulary(self) -> bool:
        """Whether each model can read the other's output."""
        return share_vocabulary(self.left.trace, self.right.trace)


def pair_of(shown: ViewedRun | Pair[ViewedRun]) -> Pair[ViewedRun] | None:
    """Such a pair; for a run outside a page the one that its link names, if both have one checkpoint.

    Errors as of `ModelAccess`.
    """
    if isinstance(shown, Pair):
        return shown
    compared, _ = settled(shown.link)
    stands_right = compared == "changed" and bool(shown.link.interventions)
    link = control_of(shown.link) if stands_right else second_of(shown.link)[0]
    if link.model != shown.link.model or not shown.trace.n_steps or shown.view.guess:
        return None
    trace = shown.work.run(shown.checkpoint, link.query(shown.checkpoint.content_hash))
    view = replace(shown.view, step=max(min(shown.view.step, trace.n_steps - 1), 0))
    slot = SECOND if shown.slot == MAIN else MAIN
    visible = VisibleTrace(trace, view, slot=slot)
    second = ViewedRun(visible, shown.checkpoint, replace(link, view=view), shown.work)
    return Pair(compared, second, shown) if stands_right else Pair(compared, shown, second)


def read_by(reader: ViewedRun, written: ViewedRun) -> Trace:
    """A run's model reads the other run's output after its own source; cached for all users.

    Raises `QueryError` if the output does not fit the model, and `BusyError` if its queue is full.
    """
    if reader.trace.query == written.trace.query:
        return written.trace
    query, ids = reader.trace.query, written.trace.tgt_ids
    return reader.work.compute(
        ("read_output", query, ids),
        partial(read_output, reader.checkpoint, query, ids, most_map_bytes=MAP_BYTES),
        nbytes=lambda trace: trace.nbytes,
    )


def cross(written: ViewedRun, reader: ViewedRun) -> Crossed:
    """A run's output under its own model and under the other one; errors as of `read_by`."""
    other = read_by(reader, written)
    return reader.work.compute(
        ("crossed", written.trace.query, reader.trace.query),
        partial(crossed, written.trace, other),
        nbytes=lambda found: found.nbytes,
    )
