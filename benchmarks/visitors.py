"""Simulated visitors of the app: each has its own sentence, and checks that everything shown is about that sentence.

A visitor does what a person does in a browser: open the app, translate, go to another step, choose another layer or
head, go to another part of a page or to another page; between two actions they think. Like their browser, they fetch
what charts show at other steps, and step without asking the server; it hears of it just before their next action.
All visitors share one event loop, which costs the machine a few milliseconds per action.
"""

from __future__ import annotations

import asyncio
import functools
import html
import itertools
import json
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from benchmarks.raw_client import (
    ANSWER_SECONDS,
    PROTOCOL,
    STEPPER,
    Conversation,
    PageFailedError,
    Rerun,
    Rest,
    at_step,
    frames_of,
    has_steps,
    rest_on,
    stream_address,
)
from benchmarks.room_client import get_all
from glassformer.components.stepper_view import rest_key
from transformer.runs.trace import Trace

PAGES = ("step", "attention", "masks", "positions", "inside")  # in the order in which a visitor goes round
WITH_STEPPER = ("step", "attention", "inside")
PARTS = {
    "panel": ("All heads", "One map", "Flow"),
    "inside_panel": ("The model", "Residual stream", "Logit lens", "Feed-forward", "Embeddings"),
}  # the controls that lead to another part of a page, and what they offer
WEIGHTS = {"step": 40, "translate": 20, "head": 15, "part": 10, "page": 15}
CHANGE, OFTEN = "change", 20  # what visitors do besides who change something inside the model, and its weight
CHANGES = (
    "zero-cross.{layer}.{head}",
    "zero-decoder.{layer}.{head}",
    "zero-cross.1.{head}_zero-cross.2.{head}_zero-cross.3.{head}",
    "temper-cross.{layer}.{head}.0p5",
    "scale-all.off.1",
    "causal-off",  # no cache, and each prefix is read by itself
)
PATIENCE_SECONDS = 2.0  # after which a browser fetches what charts show at other steps
MASKS = ("mask_bool", "mask_additive")
MAPS = ("cross_map", "head_map", "overview_encoder", "overview_decoder", "overview_cross", *MASKS)
CANDIDATES = "candidates"
SENTENCES = (
    "我喜欢喝咖啡。", "汤姆有两个孩子。", "你能帮我一下吗？", "我不知道她为什么哭。", "今天天气很好。",
    "他在图书馆看书。", "我们明天去北京。", "她会说三种语言。", "这本书很有意思。", "请把门关上。",
    "我昨天没有上班。", "他们住在海边。", "你叫什么名字？", "这条河很长。", "我想买一辆车。",
    "孩子们在花园里玩。", "火车八点出发。", "我忘了带钥匙。", "她每天早上跑步。", "这个问题很难。",
    "他不喜欢吃鱼。", "我们需要更多时间。", "老师给我们讲故事。", "外面下着大雨。", "我的手机坏了。",
    "你去过法国吗？", "他给我写了一封信。", "商店几点关门？", "我妹妹在医院工作。", "这件衣服太贵了。",
    "他开车很快。", "我听不懂你的话。", "晚饭已经做好了。", "猫在桌子下面睡觉。", "我们认识很多年了。",
    "他忘记了我的生日。", "请再说一遍。", "这里不能抽烟。", "我打算学习音乐。", "她的房间非常干净。",
)  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """What one action cost and brought.

    Attributes:
        visitor: Whose.
        action: "open", one of `WEIGHTS`, or `CHANGE` for whatever ran a changed model.
        at: When it was asked for, on the clock of `time.monotonic`.
        seconds: Until the page's run had ended.
        received_bytes: What came over the WebSocket.
        sentence: The sentence that the visitor had asked for; None for the app's own.
        step: The step that the visitor had asked for.
        changes: What the visitor had changed inside the model, as an address has it.
        drawn: The JSON of each component that was drawn, by key; empty once it has been checked.
        error: What went wrong; "" if nothing.
    """

    visitor: int
    action: str
    at: float
    seconds: float
    received_bytes: int = 0
    sentence: str | None = None
    step: int = 0
    changes: str = ""
    drawn: dict[str, str] = field(default_factory=dict)
    error: str = ""


def sentences(visitor: int, n_visitors: int, *, seed: int) -> Iterator[str]:
    """Sentences that no other visitor has: two or three of `SENTENCES` one after the other."""
    pairs = list(itertools.permutations(SENTENCES, 2))
    random.Random(seed).shuffle(pairs)
    whole = itertools.chain(pairs, itertools.permutations(SENTENCES, 3))
    yield from ("".join(parts) for parts in itertools.islice(whole, visitor, None, n_visitors))


def more_sentences(*, seed: int) -> Iterator[str]:
    """Sentences about as long as those of `sentences`, as no visitor has them: with a number at the end."""
    dice = random.Random(seed)
    for number in itertools.count():
        yield "".join(dice.sample(SENTENCES, 2)) + str(number)


class Visitor:
    """One visitor with a connection of their own.

    Args:
        number: From 0.
        own: Sentences of their own.
        n_layers, n_heads: What can be chosen.
        seed: Decides what the visitor does.
        changing: They also change something inside the model, each time something else.
    """

    def __init__(
        self, number: int, own: Iterator[str], *, n_layers: int, n_heads: int, seed: int, changing: bool = False
    ) -> None:
        self.number, self._weights = number, WEIGHTS | ({CHANGE: OFTEN} if changing else {})
        self._own, self._n_layers, self._n_heads = own, n_layers, n_heads
        self._random = random.Random(seed * 1000 + number)
        self._talk = Conversation(keeps_messages=True)
        self._socket: ClientConnection | None = None
        self._page, self._sentence, self._step, self._layer, self._changes = 0, "", 0, "", ""
        self._port: int = 0
        self._frames = list[str]()  # not fetched yet
        self._untold: Rest | None = None  # where the visitor rests, which the server has not heard yet

    async def open(self, url: str, *, query: str | None = None) -> Answer:
        """Connect and run the first page, with these parameters in its address."""

        async def ask() -> Rerun:
            self._port = urlsplit(url).port or 0
            self._socket = await connect(stream_address(url), subprotocols=[PROTOCOL], max_size=None)
            return await self._rerun(page=PAGES[0], query=query)

        return await self._timed("open", ask)

    async def act(self, action: str | None = None) -> Answer:
        """Do one thing, or what the dice say."""
        names = [name for name in self._weights if self.can(name)]
        action = action or self._random.choices(names, [self._weights[name] for name in names])[0]
        ways = {"step": self._go, "translate": self._translate, "head": self._choose, "part": self._move,
                "page": self._turn, CHANGE: self._change}  # fmt: skip
        return await self._timed(CHANGE if action == "translate" and self._changes else action, ways[action])

    async def look_round(self, mean_seconds: float) -> list[Answer]:
        """Go once to all pages and all their parts, thinking in between; ends where it began."""
        answers = []
        for _ in PAGES:
            for key in PARTS:
                names = (*PARTS[key][1:], PARTS[key][0])  # the first one stays
                for name in names if key in self._talk.widgets else ():
                    await self.think(mean_seconds)
                    answers.append(await self._timed("part", functools.partial(self._pick, key, name)))
            await self.think(mean_seconds)
            answers.append(await self.act("page"))
        return answers

    async def think(self, mean_seconds: float) -> None:
        """Wait as long as a person may take; the times are exponentially distributed."""
        seconds = self._random.expovariate(1 / mean_seconds) if mean_seconds else 0
        if seconds > PATIENCE_SECONDS:
            await asyncio.sleep(PATIENCE_SECONDS)
            await self._fetch_frames()
            seconds -= PATIENCE_SECONDS
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        """Leave."""
        if self._socket is not None:
            await self._socket.close()

    @property
    def page(self) -> str:
        """Where the visitor is."""
        return PAGES[self._page]

    def can(self, action: str) -> bool:
        """Whether the page that the visitor is on has what an action needs."""
        if action == "step":
            return has_steps(self._talk.widgets)
        needed = {"head": ("layer",), "translate": ("source",), "part": tuple(PARTS)}.get(action)
        return needed is None or any(key in self._talk.widgets for key in needed)

    async def _timed(self, action: str, ask: Callable[[], Awaitable[Rerun]]) -> Answer:
        at, error, result = time.monotonic(), "", Rerun()
        try:
            result = await ask()
            error = "; ".join(result.errors)
            nothing = {STEPPER, rest_key(STEPPER)}.isdisjoint(result.drawn)
            if nothing and PAGES[self._page] in WITH_STEPPER and not self._untold:
                error = error or "The page shows no sentence."
        except (PageFailedError, WebSocketException, OSError, TimeoutError, KeyError) as failure:
            error = f"{type(failure).__name__}: {failure}"
        seconds, sentence = time.monotonic() - at, self._sentence or None
        return Answer(
            visitor=self.number,
            action=action,
            at=at,
            seconds=seconds,
            received_bytes=result.received_bytes,
            sentence=sentence,
            step=self._step,
            changes=self._changes,
            drawn=result.drawn,
            error=error,
        )

    async def _rerun(
        self, *states: WidgetState, page: str | None = None, query: str | None = None, fragment_id: str = ""
    ) -> Rerun:
        if rest := self._untold:  # ahead of what the visitor does next
            self._untold = None
            await self._rerun(rest.state, fragment_id=rest.fragment_id)
        message = self._talk.request(page=page, query=query, states=states, fragment_id=fragment_id)
        if self._socket is None:
            raise ConnectionError("The visitor has not opened the app.")
        result = Rerun()
        async with asyncio.timeout(ANSWER_SECONDS):
            await self._socket.send(message)
            while not self._talk.take(await self._socket.recv(), result):
                pass
        self._frames = (self._frames if fragment_id else []) + frames_of(result)
        return result

    async def _fetch_frames(self) -> None:
        """Fetch what charts show at other steps; of what was drawn anew since, the server may have let go."""
        frames, self._frames = self._frames, []
        await get_all(self._port, frames)

    async def _translate(self) -> Rerun:
        self._sentence, self._step = next(self._own), 0
        box = self._talk.widgets["source"]
        state = WidgetState(id=box.id, string_value=self._sentence)
        return await self._rerun(state, fragment_id=box.fragment_id)

    async def _change(self) -> Rerun:
        """Open the page again with something changed inside the model."""
        layer, head = self._random.randint(1, self._n_layers), self._random.randint(1, self._n_heads)
        self._changes, self._step = self._random.choice(CHANGES).format(layer=layer, head=head), 0
        self._layer = ""
        asked = {"do": self._changes} | ({"src": self._sentence} if self._sentence else {})
        return await self._rerun(page=PAGES[self._page], query=urlencode(asked))

    async def _go(self) -> Rerun:
        """Step where the charts follow by themselves, else ask for it as the stepper in a browser does."""
        shown = json.loads(self._talk.widgets[STEPPER].data)[0]
        others = [step for step in range(len(shown["run"]["target"])) if step != self._step]
        self._step = self._random.choice(others)
        written = at_step(self._talk.query, self._step)
        rest = rest_on(self._talk.widgets, self._step, when=time.monotonic_ns(), written=written)
        if not rest.alone:
            return await self._rerun(rest.state, fragment_id=rest.fragment_id)
        await self._fetch_frames()
        self._talk.write_step(self._step)
        self._untold = rest
        return Rerun()

    async def _choose(self) -> Rerun:
        """Choose another layer, or another head of the layer that is chosen."""
        key, count = ("head", self._n_heads) if self._layer else ("layer", self._n_layers)
        chosen = str(self._random.randint(1, count))
        if key == "layer":
            self._layer = chosen
        return await self._pick(key, chosen)

    async def _move(self) -> Rerun:
        """Go to another part of the page."""
        key = next(key for key in PARTS if key in self._talk.widgets)
        return await self._pick(key, self._random.choice(PARTS[key]))

    async def _pick(self, key: str, name: str) -> Rerun:
        """Click one of the choices of a control, or take the one of a menu that ends so: "Layer 2"."""
        widget = self._talk.widgets[key]
        state = WidgetState(id=widget.id)
        if widget.options:
            state.string_value = next(option for option in widget.options if option.endswith(name))
        else:
            state.string_array_value.data.append(name)
        return await self._rerun(state, fragment_id=widget.fragment_id)

    async def _turn(self) -> Rerun:
        self._page = (self._page + 1) % len(PAGES)
        return await self._rerun(page=PAGES[self._page])


def foreign(answer: Answer, trace: Trace, *, beside: Sequence[Trace] = ()) -> list[str]:
    """What in an answer does not belong to the visitor's own sentence, in words; empty if all of it does.

    Args:
        answer: What came.
        trace: Of the visitor's sentence, made without the server.
        beside: Of the examples; where the visitor's sentence is the longest of a batch, its masks show one of them.
    """
    found = []
    if STEPPER in answer.drawn:
        run = _payload(answer, STEPPER)["run"]
        shown = tuple(chip["piece"] for chip in run["source"]), tuple(chip["piece"] for chip in run["target"])
        if shown != (trace.src_tokens, trace.tgt_tokens):
            found.append(f"the stepper shows {' '.join((*shown[0], *shown[1]))}")
    rows = [str(label) for label in trace.row_labels()]
    expected = (list(trace.src_tokens), list(trace.read_tokens), rows)
    others = [axis for one in beside for axis in (list(one.read_tokens), [str(label) for label in one.row_labels()])]
    for key in MAPS:
        for labels in _axes(answer, key):
            if labels not in expected and not (key in MASKS and labels in others):
                found.append(f"{key} has the axis {labels}")
    if CANDIDATES in answer.drawn:
        table = json.loads(_payload(answer, CANDIDATES)["figure"])["layout"]["meta"]["table"]["rows"]
        listed = trace.step(answer.step, top_k=10).candidates
        if [row[1] for row in table] != [candidate.piece for candidate in listed]:
            found.append(f"step {answer.step + 1} has the candidates {[row[1] for row in table]}")
    return found


def _payload(answer: Answer, key: str) -> dict[str, Any]:
    return json.loads(answer.drawn[key])[0]


def _axes(answer: Answer, key: str) -> Iterator[list[str]]:
    """The labels of a map's rows and columns without their numbers and without padding."""
    if key not in answer.drawn:
        return
    meta = json.loads(_payload(answer, key)["figure"])["layout"]["meta"]
    cells, grid = meta.get("cells", {}), meta.get("grid", {})
    for labels in (cells.get("rows"), cells.get("columns"), grid.get("queries"), grid.get("keys")):
        if labels is not None:
            plain = [html.unescape(label.partition(": <b>")[2].removesuffix("</b>")) for label in labels]
            yield [label for label in plain if not label.startswith("<pad>")]
