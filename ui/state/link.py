"""What a web address says: which run is asked for and what of it is looked at.

A `Link` is read from query parameters and written back to them. It never trusts them: what is unknown or out of
range is put right and said in a note. Only what differs from the defaults is written, so the plain address of the
app is the default view.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from transformer.errors import QueryError
from transformer.runs.interventions import MAX_CHARACTERS, Intervention, parse, write
from transformer.runs.query import MAX_BEAM, MAX_NEW, MAX_SEED, MAX_TOP_K, Beam, Decoding, Greedy, Query, Sampling
from ui.state import answers, branch_addresses, nested
from ui.state.address import Reader
from ui.state.answers import Answers
from ui.state.view import MOST_COMPANIONS, View, read_view, write_view
from words import say

MAX_NAME = 100
MAX_JOB = 40
DEFAULT_NEW = 128


@dataclass(frozen=True, kw_only=True)
class Link:
    """Everything that an address can say."""

    model: str = ""  # name of a checkpoint; empty for the default one
    revision: str = ""  # beginning of the content hash that the link was made with; empty if not said
    answers: Answers = ()  # what the reader said of a model of another program that its files do not say
    source: str | None = None  # the sentence; None for the checkpoint's first example
    reference: str | None = None  # what should come out for it; None if nobody said
    decoding: Decoding = field(default_factory=Greedy)  # as in `transformer.Query`
    max_new: int = DEFAULT_NEW  # as in `transformer.Query`
    forced: tuple[int, ...] = ()  # as in `transformer.Query`
    hypothesis: int = 0  # as in `transformer.Query`
    interventions: tuple[Intervention, ...] = ()  # what is changed inside the model, as in `transformer.Query`
    # Further sentences, which the Masks page runs in one batch with it; None for the page's own choice.
    companions: tuple[str, ...] | None = None
    # Every branch that was tried, oldest first; nothing if there is only the one that is shown.
    tried: tuple[branch_addresses.Branch, ...] = ()
    # A file of sentences that is run in the background; whoever knows its name may see it, so that only the address
    # of its own page says it.
    job: str = ""
    # What the second run of a comparison differs in, as `ui.state.nested` writes it; nothing for no second.
    beside: str = ""
    view: View = field(default_factory=View)  # what is looked at

    def query(self, content_hash: str) -> Query:
        """The query on a checkpoint.

        Args:
            content_hash: Of the checkpoint that `model` means.

        Raises:
            QueryError: The source is too long.
        """
        return Query(
            checkpoint=content_hash,
            source=self.source or "",
            decoding=self.decoding,
            max_new=self.max_new,
            forced=self.forced,
            hypothesis=self.hypothesis,
            interventions=self.interventions,
        )


def write_link(link: Link) -> dict[str, str]:
    """The query parameters of a link; what is at its default is left out."""
    values: dict[str, object] = {
        "model": link.model or None,
        "rev": link.revision or None,
        "answers": answers.write(link.answers) or None,
        "src": link.source,
        "ref": link.reference or None,
        "max": None if link.max_new == DEFAULT_NEW else link.max_new,
        **_decoding_values(link.decoding),
        "forced": ".".join(map(str, link.forced)) or None,
        "tried": branch_addresses.write(link.tried) or None,
        "result": link.hypothesis + 1 if link.hypothesis else None,
        "do": write(link.interventions) or None,
        "job": link.job or None,
        "with": None if link.companions is None else "\n".join(link.companions),
        "b": link.beside or None,
        **write_view(link.view),
    }
    return {key: str(value) for key, value in values.items() if value is not None}


def read_link(parameters: Mapping[str, Sequence[str]]) -> tuple[Link, tuple[str, ...]]:
    """Read query parameters.

    Args:
        parameters: Each name with all its values.

    Returns:
        The link, and a note for everything that had to be put right.
    """
    reader = Reader(parameters)
    link = Link(
        model=reader.text("model", MAX_NAME) or "",
        revision=reader.text("rev", MAX_NAME) or "",
        answers=_read_answers(reader),
        source=reader.source("src"),
        reference=reader.reference("ref"),
        decoding=_read_decoding(reader),
        max_new=reader.integer("max", 1, MAX_NEW) or DEFAULT_NEW,
        forced=reader.ids("forced"),
        tried=reader.branches("tried"),
        interventions=_read_interventions(reader),
        job=reader.text("job", MAX_JOB) or "",
        companions=reader.sentences("with", most=MOST_COMPANIONS),
        beside=_read_beside(reader),
        view=read_view(reader),
    )
    if isinstance(link.decoding, Beam):
        result = (reader.integer("result", 1, link.decoding.size) or 1) - 1
        link = replace(link, hypothesis=result)
    if len(link.forced) > link.max_new:
        link = replace(link, forced=())
        reader.notes.append(say("The link forces more pieces than the output may have; they were left out."))
    return link, tuple(reader.notes)


def _read_interventions(reader: Reader) -> tuple[Intervention, ...]:
    try:
        return parse(reader.text("do", MAX_CHARACTERS) or "")
    except QueryError as error:
        note = say(
            "The link's changes of the model were left out: {problem} The unchanged run is shown.",
            problem=error.sentence,
        )
        reader.notes.append(note)
        return ()


def _read_beside(reader: Reader) -> str:
    said = nested.read(reader.text("b", nested.LONGEST) or "")
    if said is None:
        reader.notes.append(say("What the link says of a second run could not be read; it was left out."))
    return nested.write(said or {})


def _read_answers(reader: Reader) -> Answers:
    found = answers.read(reader.text("answers", answers.LONGEST) or "")
    if found is None:
        reader.notes.append(say("The link's answers about the model could not be read; they were left out."))
    return found or ()


def _decoding_values(decoding: Decoding) -> dict[str, object]:
    match decoding:
        case Beam():
            return {"how": "beam", "beam": decoding.size, "lp": _digits(decoding.length_penalty)}
        case Sampling():
            return {
                "how": "sampling",
                "temp": _digits(decoding.temperature),
                "k": decoding.top_k or None,
                "p": None if decoding.top_p == 1 else _digits(decoding.top_p),
                "seed": decoding.seed,
            }
        case _:
            return {}


def _digits(number: float) -> str:
    """As few digits as give the same number again."""
    return repr(float(number)).removesuffix(".0")


def _read_decoding(reader: Reader) -> Decoding:
    how = reader.text("how", MAX_NAME)
    if how == "beam":
        return Beam(
            size=_or(reader.integer("beam", 1, MAX_BEAM), Beam().size),
            length_penalty=_or(reader.number("lp", 0.0, 2.0), Beam().length_penalty),
        )
    if how == "sampling":
        return Sampling(
            temperature=_or(reader.number("temp", 0.05, 5.0), 1.0),
            top_k=_or(reader.integer("k", 0, MAX_TOP_K), 0),
            top_p=_or(reader.number("p", 0.01, 1.0), 1.0),
            seed=_or(reader.integer("seed", 0, MAX_SEED), 0),
        )
    if how not in (None, "greedy"):
        note = say("The link asks for the unknown way of decoding “{how}”; greedy was taken.", how=how[:40])
        reader.notes.append(note)
    return Greedy()


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value
