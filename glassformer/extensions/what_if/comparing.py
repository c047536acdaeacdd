"""What a comparison is of: two runs, of which the address says the first, and of the second what differs.

do=zero-cross.3.1                the same query without its changes, and with them
b=src%3DI+like+tea               the sentence of the address, and another one
b=model%3Den-fr                  the checkpoint of the address, and another one
b=forced%3D5.17                  the model's own choice, and a branch of it
b=kind%3Dcross%26layer%3D3%26head%3D1    what is looked at, and another head
"""

from dataclasses import replace
from typing import Final

from glassformer.extensions.what_if.what_if_look import Compared, WhatIfLook
from glassformer.state import nested
from glassformer.state.link import Link, read_link, write_link
from transformer.checkpoint.snapshots import split
from transformer.i18n import say

OF: Final[dict[Compared, tuple[str, ...]]] = {
    "checkpoints": ("model", "rev", "answers"),
    "sentences": ("src",),
    "ways": ("how", "beam", "lp", "temp", "k", "p", "seed", "max", "do"),
    "branches": ("forced", "result"),
    "heads": nested.LOOKED_AT,
}
"""What the second run of each comparison differs in; where it differs in several, the first one here names it."""

HEADS: Final = "attention"  # the page on which a head that was chosen is what is looked at
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
    """What the page Compare is opened with: give it to `menu.link`.

    The first run stands on the left, `with_` on the right; None where it is still to be chosen. If the two differ in
    nothing but that one of them has no interventions, it is that one which stands on the left.
    """
    link = replace(link, beside="", view=link.view.but(compared="auto"))
    if with_ is None:
        return link
    said = differences(link, with_)
    if set(said) == {"do"} and not (link.interventions and with_.interventions):
        return replace(link, interventions=link.interventions or with_.interventions, hypothesis=with_.hypothesis)
    return replace(link, beside=nested.write(said))


def of_what_is_looked_at(link: Link, page: str) -> Link:
    """What "Compare this" leads to: a changed run and its control, a branch and the own choice, a head and another.

    The link is as the page publishes it. Where there is none of these, Compare leads on itself.
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
        return replace(link, beside=nested.write(said), view=link.view.but(compared="heads"))
    return link


def differences(first: Link, second: Link) -> dict[str, str]:
    """What a second run differs in, as an address says it; the step is that of the first."""
    here, there = write_link(replace(first, beside="")), write_link(replace(second, beside=""))
    names = {name for name in nested.NAMES if name != nested.STEP and here.get(name) != there.get(name)}
    changed = names | {"whole"} if _whole(first.model) != _whole(second.model) else names
    own = {name for name, of in _BELONGS.items() if changed & set(of)}  # not taken over, so that it is said again
    names = (names - {"rev", "answers"}) if "model" not in names else names
    return {name: there.get(name, "") for name in nested.NAMES if name in names or (name in own and name in there)}


def second_of(link: Link) -> tuple[Link, tuple[str, ...]]:
    """The second run of a link, and a note for everything in it that had to be put right."""
    said = nested.read(link.beside) or {}
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
    """The checkpoint of which a snapshot is named; the name itself for any other."""
    named = split(model)
    return model if named is None else named[0]


def control_of(link: Link) -> Link:
    """The same run with nothing changed inside the model, whatever else is said of a second one."""
    return replace(link, interventions=(), beside="", tried=())


def settled(link: Link) -> tuple[Compared, tuple[str, ...]]:
    """What a link compares, never "auto", and a note if what it says contradicts itself."""
    said, asked = nested.read(link.beside) or {}, link.view.of(WhatIfLook).compared
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
    """What a second run differs in, changed, by the names of `nested.NAMES`; None takes a name out."""
    said = {**(nested.read(text) or {}), **changes}
    return nested.write({name: value for name, value in said.items() if value is not None})
