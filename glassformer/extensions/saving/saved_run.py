"""Runs saved as self-contained HTML files, the menu that saves a run, and saved runs in the app.

The pictures are those of one page, or of all pages with a stepper, with their frames and in every language of the app.
Left out, but listed, are pictures that need the model at each step or would make the file too large, and parts of a
page that are not pictures. All text is inserted as JSON and displayed as text.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as but
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from glassformer.charts.theme import shortened
from glassformer.components.custom_component import read_asset, script
from glassformer.components.embedding import embedded
from glassformer.components.stepper_view import StepperRun
from glassformer.extensions.saving.recorded_checkpoint import HOLDS, RecordedCheckpoint, opened
from glassformer.frame.sentence_stepper import SAVES
from glassformer.runs import loading
from glassformer.runs.open_run import OpenRun, seen
from glassformer.runs.picture import PAGES, Page, Picture, declare_all
from glassformer.runs.run_address import address
from glassformer.runs.sources import Source
from glassformer.runs.step_frames import NoFramesError, RunRef, frames_of
from glassformer.runs.viewed_run import ViewedRun, at_step
from glassformer.shared import cover_box
from glassformer.shared.csv_export import Origin, decoding_of
from glassformer.shared.drawing import at_a_moment
from glassformer.shared.i18n import here, st
from glassformer.shared.page_blocks import PageBlocks
from glassformer.state import session
from glassformer.state.global_params import base
from glassformer.state.language import tag_of
from glassformer.state.link import way_of, write_link
from glassformer.state.view import MAIN
from transformer.checkpoint.free_memory import Progress
from transformer.checkpoint.listing import Entry, signature
from transformer.checkpoint.load import Checkpoint
from transformer.errors import GlassformerError
from transformer.i18n import ENGLISH, joined, languages, name_of, say
from transformer.i18n.catalogue import browser_words
from transformer.runs.query import Query
from transformer.runs.run_file import SUFFIX, run_bytes

MOST_STEPS: Final = 64  # of a run whose file may have all pages: 30 steps take some seconds of the processor
NO_TABLE: Final = "none"  # in place of a button: what the browser has is rounded, so it saves no table of it


@dataclass
class SavedPage:
    """What a file has of a page."""

    room: int  # bytes that are left
    slot: str
    of: Origin  # what its files are of
    language: str
    shows: list[dict[str, Any]] = field(default_factory=list)  # what components are given
    frames: dict[str, Any] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)  # titles

    def missing(self) -> str:
        """What is not there, in a sentence; "" if all is."""
        names = joined(", ", dict.fromkeys(self.left_out))
        return say("This file leaves out some content that Glassformer shows: {names}.", names=names) if names else ""

    def add(self, payload: dict[str, Any], name: str = "", moves: dict[str, Any] | None = None) -> bool:
        """Take something in, with its frames; gives back whether there was room."""
        n_bytes = len(json.dumps((payload, moves)))
        if n_bytes > self.room:
            return False
        self.room -= n_bytes
        self.shows.append(payload)
        self.frames |= {name: moves} if moves else {}
        return True


def others(page: Page, run: ViewedRun) -> list[Page]:
    """The other pages with a picture that moves; one of two runs only if the run's link names a second."""
    declare_all()
    alone = not run.link.beside and not run.link.interventions
    found = [one for one in PAGES.values() if one is not page and not (one.of_two and alone)]
    return [
        one
        for one in found
        if any(picture.follows == "frames" for part in one.parts.values() for picture in part.pictures.values())
    ]


def seen_on(page: Page, run: ViewedRun) -> ViewedRun:
    """A run with another page's view."""
    link = but(run.link, view=but(run.link.view, step=run.view.step))
    return seen(run.checkpoint, link, run.trace, kind=page.kind(link.view), slot=run.slot)[0]


def saved_page(
    made: SavedPage, page: Page, run: ViewedRun, *, whole: bool, pictures: Sequence[Picture[Any]] | None = None
) -> None:
    """Add the selected part, and the parts that have only pictures.

    A `whole` page adds all parts; named `pictures` replace all others and may need the model. Errors as of
    `ModelAccess`.
    """
    if pictures is not None:
        made.left_out += [picture.title for picture in pictures if not _picture(made, picture, run, works=True)]
        return
    chosen = page.chosen(run.view)
    parts = sorted(page.parts.values(), key=lambda part: part is not chosen)
    for part in parts:
        if part.asks and part is not chosen and not whole:
            made.left_out.append(part.title)
            continue
        made.left_out += [picture.title for picture in part.pictures.values() if not _picture(made, picture, run)]
        for key, (title, make) in part.others.items():
            payload = make(run, made.of, f"{made.slot}{key}")
            if payload is not None and not made.add(here(payload, made.language)):
                made.left_out.append(title)


def _picture(made: SavedPage, picture: Picture[Any], run: ViewedRun, *, works: bool = False) -> bool:
    """Add a picture; returns False if it was left out."""
    try:
        plot = picture.of(run)
        if plot is None:
            return True
        if picture.follows == "server" and not works:
            return False
        moves = None
        if picture.follows != "still" and run.trace.n_steps > 1:
            moves = frames_of(picture, run, made.of, made.language, most=made.room)
    except (NoFramesError, GlassformerError):
        return False
    key = f"{made.slot}{picture.key}"
    name = f"{made.language} {key}"
    moment = at_a_moment(plot.spec, made.of, key=picture.key, language=made.language, **plot.words)[1]
    rounded = plot.spec.get("table") or "grid" in plot.spec["layout"].get("meta", {})
    more = {"name": key, "table": NO_TABLE if rounded else "", "fit": 0, "clickable": False,
            "follows": name if moves else "still", "step": run.view.step}  # fmt: skip
    return made.add(moment | more, name, moves)


MOST_BYTES: Final = 20_000_000  # of pictures and frames before they are packed; what comes then is left out
SLOTS: Final = ("saved-", "beside-")  # as for a second run


@dataclass(frozen=True)
class SavedRunContent:
    """A run, and what a file shows of it."""

    run: ViewedRun
    stepper: StepperRun
    page: Page
    pictures: Sequence[Picture[Any]] | None = None  # these alone; None for those of the page
    more: bool = False  # and those of all other pages that step
    address: str = ""  # opens the page live; "" for none


@dataclass
class SavedRunRequest:
    """The contents of a file; without the run, because a session keeps it."""

    again: RunRef
    page: Page  # whose pictures it has
    stepper: StepperRun
    address: str  # opens the same live; "" for none
    step: int | None = None  # the user's step since the page was drawn


def saved_run(kept: SavedRunRequest, *, more: bool = False) -> bytes:
    """The file, made without a session; with `more`, of all pages that step. Errors as of `RunRef.run` and `Work`."""
    run = kept.again.run()
    run = run if kept.step is None else at_step(run, kept.step)
    return file_of(SavedRunContent(run, kept.stepper, kept.page, more=more, address=kept.address)).encode()


def run_data(kept: SavedRunRequest) -> bytes:
    """The run as data, for `transformer.load_run`; errors as of `RunRef.run`."""
    return run_bytes(kept.again.run().trace)


def file_of(*shown: SavedRunContent) -> str:
    """The file, of one run or of two beside each other; errors as of `ModelAccess`."""
    runs = list(zip(shown, SLOTS, strict=False))
    told = {"languages": [[_in_language(one, slot, language) for one, slot in runs] for language in languages()]}
    if len(shown) > 1:  # each stepper moves the other
        for sides in told["languages"]:
            for side, slot in zip(sides, reversed(SLOTS), strict=True):
                side["stepper"]["moves"] = f"{slot}{session.STEPPER}"
    page = read_asset("extensions/saving/components/bundle/page.html")
    return page.replace("EMBEDDED", embedded(script(), run=told))


def origin(run: ViewedRun) -> Origin:
    """What a run's files are of."""
    query = run.trace.query
    rows = run.trace.rows_note()
    return Origin(checkpoint=run.checkpoint.name, sentence=query.source, decoding=decoding_of(query), rows=rows)


def _in_language(shown: SavedRunContent, slot: str, language: str) -> dict[str, Any]:
    run = shown.run
    card, query = run.checkpoint.card, run.trace.query
    spoken = {} if language == ENGLISH else {"lang": tag_of(language), "words": browser_words(language)}
    pages, frames, room = list[dict[str, Any]](), dict[str, Any](), MOST_BYTES // len(languages())
    for page in [shown.page, *(others(shown.page, run) if shown.more else ())]:
        there = run if page is shown.page else seen_on(page, run)
        made = SavedPage(room, slot, origin(run), language)
        saved_page(made, page, there, whole=shown.more, pictures=shown.pictures)
        address = shown.address.replace(f"/{shown.page.path}?", f"/{page.path}?", 1)
        shows = [payload | spoken for payload in made.shows]
        pages.append({"path": page.path, "title": page.title, "address": address, "missing": made.missing(),
                      "shows": shows})  # fmt: skip
        frames |= made.frames
        room = made.room
    title = say("{title}: {text}", title=card.title or run.checkpoint.name, text=query.source)
    return here(
        {
            "tag": tag_of(language),
            "name": name_of(language),
            "title": title,
            "about": [[name, text] for name, text in _about(run).items() if text],
            "live": say("Open this run in Glassformer"),
            "query": {"says": say("The query as JSON"), "json": query.to_json()},
            "dark": say("Dark"),
            "light": say("Light"),
            "stepper": _stepper(shown.stepper, slot, run.view.step) | spoken,
            "pages": pages,
            "frames": frames,
        },
        language,
    )


def _stepper(run: StepperRun, slot: str, step: int) -> dict[str, Any]:
    return {
        "name": f"{slot}{session.STEPPER}", "run": run.plain, "step": step, "step_revision": 0,
        "covered": False, "revealed_step": None, "compact": False, "led": False, "asks": True, "moves": "",
        "chosen": None, "choosable": False,
    }  # fmt: skip


def _about(run: ViewedRun) -> Mapping[str, str]:
    card = run.checkpoint.card
    return {
        say("Model"): card.title or run.checkpoint.name,
        say("Sentence"): run.trace.query.source,
        say("Output"): run.trace.texts[-1] if run.trace.texts else "",
        say("Languages"): joined(" → ", filter(None, (card.source_language, card.target_language))),
        say("Data and attribution"): card.data,
        say("Attribution"): card.attribution(),
        say("Licence"): card.licence,
        say("Content hash"): run.checkpoint.content_hash,
    }


# ------------------------------------------------------------------------------------------------ a run in the app

LONGEST_TITLE: Final = 120


def _open(name: str, file: Path, root: Path, progress: Progress) -> RecordedCheckpoint:
    found = opened(file, name=name, inside=root)
    _opened()[found.content_hash] = name, file, root
    return found


@st.cache_resource(show_spinner=False)
def _opened() -> dict[str, tuple[str, Path, Path]]:
    """Where the run of each content hash is."""
    return {}


def _in_memory(name: str, file: Path, root: Path) -> Checkpoint:
    which = (HOLDS, str(file), name, signature(file, ("",)))
    return loading.in_memory(which, file, partial(_open, name, file, root))


class RunSource(Source):
    """Files of runs in the folders of checkpoints, or uploaded."""

    holds = HOLDS

    def open(self, entry: Entry) -> Checkpoint:
        """The run, in the place of a model."""
        return _in_memory(entry.name, entry.folder, entry.root)

    def opened(self, content_hash: str) -> Checkpoint | None:
        """A run that was opened, again."""
        where = _opened().get(content_hash)
        if where is None:
            return None
        try:
            return _in_memory(*where)
        except GlassformerError:  # the file is gone
            return None

    def label(self, entry: Entry) -> str | None:
        """The name, marked as a run and not a model."""
        return say("{name} (saved run)", name=shortened(entry.title, limit=40)) if entry.holds == HOLDS else None

    def told(self, entry: Entry) -> tuple[str, str] | None:
        """What it is a run of."""
        if entry.holds != HOLDS or entry.error is not None:
            return None
        title = shortened(entry.title, limit=LONGEST_TITLE)
        return ":material/save:", say("a saved run: {title}", title=title)


def _show_only(checkpoint: Checkpoint, only: Query) -> None:
    """Have the session ask for the only run that there is; a note if it asks for another sentence."""
    if session.asked().source not in (None, "", only.source):
        session.add_note(
            say(
                "{name} is a saved run: it has one sentence, as it was decoded then. Open its model to run others.",
                name=checkpoint.card.title or checkpoint.name,
            )
        )
    how, settings = way_of(only.decoding)
    words = {one.key: getattr(only.decoding, one.field) for one in settings}
    most = min(only.max_new, checkpoint.config.max_len)
    st.session_state.update({session.SOURCE: only.source, session.HOW: how, session.MAX_NEW: most, **words})
    session.stand(MAIN, forced=only.forced, hypothesis=only.hypothesis, interventions=only.interventions)


SOURCE = RunSource()


class SavingBlocks(PageBlocks):
    """The menu "Save this run"; a saved run in the place of what else is asked for."""

    def opened(self, checkpoint: Checkpoint) -> None:
        """A saved run has one sentence, which is put into the box and decoded as it was."""
        if (only := checkpoint.only_query) is not None:
            _show_only(checkpoint, only)

    def below_run(self, page: Page, run: OpenRun) -> None:
        """Draw it, unless something is yet to be guessed."""
        if run.view.guess or cover_box.is_on() or not run.trace.n_steps or run.earlier:
            return
        query = urlencode(write_link(address(run.checkpoint, run.link)))
        opens = f"{base()}/{page.path}?{query}" if base() else ""
        kept = SavedRunRequest(RunRef.of(run), page, run.stepper, opens)
        st.session_state[SAVES] = kept
        with st.popover(say("Save this run"), icon=":material/save:", key=run.key("save_menu")):
            st.caption(say("One HTML file with the sentence, its steps and its pictures; or the data of the run."))
            this, every = say("Pictures of this page"), say("Pictures of all pages")
            long = say(
                "Available only for outputs of at most {most} steps, because longer ones would take too long.",
                most=MOST_STEPS,
            )
            for name, label, more in ((page.path, this, False), ("all", every, True)):
                refused = more and run.trace.n_steps > MOST_STEPS
                st.download_button(
                    label,
                    partial(saved_run, kept, more=more),
                    file_name=f"{origin(run).stem(name)}.html",
                    mime="text/html",
                    key=run.key(f"save_{name}"),
                    on_click="ignore",
                    disabled=refused,
                    help=long if refused else None,
                )
            if run.checkpoint.only_query is None:  # else the file is there already
                st.download_button(
                    say("Data of this run (.glass)"),
                    partial(run_data, kept),
                    file_name=f"{origin(run).stem('run')}{SUFFIX}",
                    mime="application/octet-stream",
                    key=run.key("save_data"),
                    on_click="ignore",
                    help=say("Opens here and in Python (`transformer.load_run`) without the model."),
                )


BLOCKS = SavingBlocks()
