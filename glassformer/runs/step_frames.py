"""Prefetched charts for every step of a run: a store of offers (`Frames`), JSON diffs between steps, HTTP routes.

A page that draws a picture offers its frames under an unguessable name. The browser fetches them when its user stays,
or is about to step; for a class with the same run they are made once. Frames are made by the functions that draw. The
current step's frame is compared with what was drawn: if they differ, or if all frames are too large, there are none,
and the server draws each step. Nothing is offered in guess mode, or of what is covered.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import secrets
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from cachetools import FIFOCache
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from glassformer.runs import loading
from glassformer.runs.picture import Picture
from glassformer.runs.viewed_run import HasSteps, ViewedRun, VisibleTrace, at_step, n_steps_of, step_of
from glassformer.server.model_runner import BusyError
from glassformer.server.render_lock import RENDER_LOCK
from glassformer.shared.csv_export import Origin
from glassformer.shared.drawing import at_a_moment
from glassformer.state import language
from glassformer.state.link import Link
from glassformer.state.view import Slot, View
from transformer.errors import GlassformerError, QueryError
from transformer.runs.query import Query

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint

PATH: Final = "frames"
MOST_BYTES: Final = 2_000_000  # of the frames of one picture, before they are compressed
MOST_KEPT: Final = 32_000_000  # bytes of all that was made
MOST_OFFERS: Final = 4096
_SECRET: Final = secrets.token_bytes(32)


class NoFramesError(Exception):
    """There are none; `status` is that of the answer: 204 where the server draws each step, which is not an error."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


@dataclass(frozen=True)
class RunRef:
    """A run that was on a page, for what comes later and must not hold it, nor its checkpoint, until then."""

    checkpoint: ref[Checkpoint]
    query: Query
    link: Link
    view: View
    slot: Slot

    @classmethod
    def of(cls, run: ViewedRun) -> RunRef:
        """That run, to be had again."""
        return cls(ref(run.checkpoint), run.trace.query, run.link, run.view, run.slot)

    def run(self) -> ViewedRun:
        """The run, at the step that was looked at. Raises QueryError if its checkpoint was let go; else as `Work`."""
        checkpoint = self.checkpoint()
        if checkpoint is None:
            raise QueryError("The checkpoint of this run is no longer open; reload the page.")
        trace = loading.run(checkpoint, self.query)
        by_layer = partial(loading.by_layer, checkpoint, trace)
        return ViewedRun(
            VisibleTrace(trace, self.view, slot=self.slot, by_layer=by_layer), checkpoint, self.link, loading
        )


@dataclass(frozen=True)
class FrameSource:
    """A picture that was drawn at some step, and all that decides what it shows at the others; it holds no run."""

    picture: Picture[Any]
    again: tuple[RunRef, ...]
    together: Callable[..., HasSteps]
    language: str
    of: Origin  # what its files are of
    drawn: str  # digest of what was drawn

    def shown(self) -> HasSteps:
        """What is pictured, at the step that was looked at; errors as of `RunRef.run`."""
        return self.together(*(one.run() for one in self.again))


def frames_of(
    picture: Picture[Any], shown: HasSteps, of: Origin, language: str, *, most: int, drawn: str = ""
) -> dict[str, Any]:
    """The first step's moment (`drawing.at_a_moment`), and the changes from it to each other step, as of `change`.

    Raises NoFramesError if they are more than `most` bytes, if some step shows nothing, or if the current step's digest
    differs from that of what was `drawn`; else as `Work`.
    """
    first: dict[str, Any] = {}
    changes: list[Any] = []
    n_bytes, n_steps, key = 0, n_steps_of(shown), f"{shown.slot}{picture.key}"
    for step in range(n_steps):
        with RENDER_LOCK.one():  # a class that draws pages comes in between
            plot = picture.of(at_step(shown, step))
            if plot is None:
                raise NoFramesError(204, f"nothing is shown at step {step + 1}")
            said = at_a_moment(plot.spec, of, key=key, language=language, **plot.words)[1]
            if drawn and step == step_of(shown) and digest(said) != drawn:
                raise NoFramesError(204, "the page has drawn something else")
            moment = said | {"figure": json.loads(said["figure"])}
            first = first or moment
            changes.append(change(first, moment))
            n_bytes += len(json.dumps(changes[-1]))
        if n_bytes * n_steps > most * (step + 1) and step:
            raise NoFramesError(204, f"more than {most:,} bytes")
    return {"first": first, "changes": changes}


def change(before: Any, after: Any) -> Any:
    """A JSON diff for `common/frames.js`: None (equal), changes by key or place, `[value]` (new), `[]` (removed)."""
    if isinstance(before, dict) and isinstance(after, dict):
        found: dict[str, Any] = {key: [] for key in before if key not in after}
        for key, value in after.items():
            changed = change(before[key], value) if key in before else [value]
            if changed is not None:
                found[key] = changed
        return found or None
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        each = {place: change(one, other) for place, (one, other) in enumerate(zip(before, after, strict=True))}
        return {str(place): changed for place, changed in each.items() if changed is not None} or None
    return None if type(before) is type(after) and before == after else [after]


def digest(moment: Mapping[str, Any]) -> str:
    """What tells two moments apart."""
    return blake2b(repr(sorted(moment.items())).encode("utf-8", "replace"), digest_size=16).hexdigest()


class Frames:
    """What was offered and what was made, by name; the oldest are let go."""

    def __init__(self) -> None:
        self._lock, self._makes = threading.Lock(), threading.Lock()
        self._offers: FIFOCache[str, FrameSource] = FIFOCache(MOST_OFFERS)
        self._made: FIFOCache[str, bytes | NoFramesError] = FIFOCache(MOST_KEPT, getsizeof=_size)

    def offer(self, picture: Picture[Any], shown: HasSteps, of: Origin, moment: Mapping[str, Any]) -> str:
        """Offer the frames of what is drawn; gives back their name, or how it follows the step without any."""
        if any(run.view.guess for run in shown.runs):
            return "server"
        if picture.follows != "frames":
            return picture.follows
        if n_steps_of(shown) < 2:
            return "still"
        spoken, of_all = language.current(), replace(of, chart="")
        decides = (picture.key, shown.slot, shown.together, spoken, of_all, *(run.decides for run in shown.runs))
        name = blake2b(repr(decides).encode("utf-8", "replace"), key=_SECRET, digest_size=16).hexdigest()
        with self._lock:
            again = tuple(map(RunRef.of, shown.runs))
            self._offers[name] = FrameSource(picture, again, shown.together, spoken, of, digest(moment))
        return name

    def find(self, name: str) -> FrameSource:
        """What was offered under a name. Raises NoFramesError."""
        with self._lock:
            if name not in self._offers:
                raise NoFramesError(404, "not offered here")
            return self._offers[name]

    def get(self, name: str) -> bytes:
        """The frames as compressed JSON, made once for all who ask. Raises NoFramesError."""
        offer = self.find(name)
        with self._makes:
            if name not in self._made:
                self._made[name] = _made(offer)
            return _given(self._made[name])

    def made(self, name: str) -> bytes | None:
        """The same without making them: None if they were not made yet."""
        found = self._made.get(name)
        return None if found is None else _given(found)


def _size(found: bytes | NoFramesError) -> int:
    return len(found) if isinstance(found, bytes) else MOST_KEPT // MOST_OFFERS


def _given(found: bytes | NoFramesError) -> bytes:
    if isinstance(found, NoFramesError):
        raise found
    return found


FRAMES: Final = Frames()  # of this process
# A thread of their own: those that Starlette has for all else shall not wait for it.
_MAKER: Final = ThreadPoolExecutor(1, "frames")


def _made(offer: FrameSource) -> bytes | NoFramesError:
    """Raises NoFramesError for what may be otherwise the next time."""
    try:
        frames = frames_of(offer.picture, offer.shown(), offer.of, offer.language, drawn=offer.drawn, most=MOST_BYTES)
    except NoFramesError as none:
        return none
    except (GlassformerError, BusyError) as error:
        raise NoFramesError(503, str(error)) from error
    text = json.dumps(frames, ensure_ascii=False, separators=(",", ":"))
    return gzip.compress(text.encode("utf-8", "replace"), 6, mtime=0)


def routes(base: str = "", frames: Frames = FRAMES) -> list[Route]:
    """The routes; `base` is the path that the app is served under."""

    async def answer(request: Request) -> Response:
        name = request.path_params["name"]
        try:
            content = frames.made(name)
            content = content or await asyncio.get_running_loop().run_in_executor(_MAKER, frames.get, name)
        except NoFramesError as none:
            return Response(status_code=none.status, headers={"Cache-Control": "no-store"})
        headers = {"Content-Encoding": "gzip", "Cache-Control": "private,max-age=3600"}
        return Response(content, media_type="application/json", headers=headers)

    return [Route(f"/{base.strip('/')}/{PATH}/{{name}}".replace("//", "/"), answer, methods=["GET"])]
