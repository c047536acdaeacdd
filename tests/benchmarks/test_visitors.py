"""Of many visitors at once on a real server nobody sees what is another's, and the check for that can fail."""

import asyncio
import html
import itertools
import json
import random
import time
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qsl, urlencode

import pytest
import torch
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.exceptions import WebSocketException

from benchmarks.class_at_once import SENTENCES, sentences
from benchmarks.raw_client import STEPPER, AsyncClient, PageFailedError, RawClient, Rerun, payload, rest_on
from glassformer.components.stepper_view import rest_key
from tests.test_checkpoints import FOLDER
from tools.serve import serve
from transformer.checkpoint.load import load

N_VISITORS = 2
PAGES = ("step", "attention", "masks", "positions", "inside")  # in the order in which a visitor goes round
WITH_STEPPER = ("step", "attention", "inside")
PARTS = {
    "panel": ("All heads", "One map", "Flow"),
    "inside_panel": ("The model", "Residual stream", "Logit lens", "Feed-forward", "Embeddings"),
}  # the controls that lead to another part of a page, and what they offer
ROUND = ("translate", "step", "step", "step", "choose", "part", "part", "turn")  # what a visitor does on each page
NEEDED = {"translate": {"source"}, "choose": {"layer"}, "part": {*PARTS}}  # controls, of which one is enough
MASKS = ("mask_bool", "mask_additive")
MAPS = ("cross_map", "head_map", "overview_encoder", "overview_decoder", "overview_cross", *MASKS)
DRAWN = {STEPPER, "candidates", "cross_map", "overview_cross", "mask_bool", "position_table", "model_diagram"}


@dataclass(frozen=True)
class Answer:
    """What one action brought: the sentence, None for the app's own, and the step are those that were asked for."""

    action: str
    sentence: str | None
    step: int
    error: str
    drawn: dict[str, str] = field(default_factory=dict)  # the JSON of each component, by its key


class Visitor:
    """One with sentences of their own, who does what a person does in a browser, but without thinking."""

    def __init__(self, number):
        self.own, self.dice, self.tab = sentences(number, N_VISITORS, seed=5), random.Random(number), AsyncClient()
        self.page, self.sentence, self.step, self.has_layer = 0, None, 0, False
        self.untold = None  # where the visitor rests, which the server has not heard yet
        self.answers = []

    async def visit(self, url):
        """Look at every part of every page, and then do on each page what there is to do."""
        await self.tab.connect(url)
        await self.do("open", self.rerun(page=PAGES[0]))
        for _ in PAGES:
            for key in PARTS.keys() & self.tab.widgets.keys():
                for name in (*PARTS[key][1:], PARTS[key][0]):  # the first one stays
                    await self.do("part", self.pick(key, name))
            await self.do("turn", self.turn())
        for action in ROUND * len(PAGES):
            if self.can(action):
                await self.do(action, getattr(self, action if action != "step" else "go")())
        assert self.page == 0  # twice around
        await self.tab.close()
        return self.answers

    def can(self, action):
        """Whether the page has what an action needs; if nothing moves with the step, it has no controls of steps."""
        there = self.tab.widgets
        if action == "step":
            return STEPPER in there and not payload(there[STEPPER].data)["run"]["still"]
        return not NEEDED.get(action) or bool(NEEDED[action] & there.keys())

    async def do(self, action, asked):
        result, error = Rerun(), ""
        try:
            result = await asked
            nothing = {STEPPER, rest_key(STEPPER)}.isdisjoint(result.drawn)
            if nothing and PAGES[self.page] in WITH_STEPPER and not self.untold:
                error = "The page shows no sentence."
        except (PageFailedError, WebSocketException, OSError, TimeoutError, KeyError) as failure:
            error = f"{type(failure).__name__}: {failure}"
        error = "; ".join(result.errors) or error
        self.answers.append(Answer(action, self.sentence, self.step, error, result.drawn))

    async def rerun(self, *states, **how):
        if rest := self.untold:  # ahead of what the visitor does next
            self.untold = None
            await self.tab.rerun(rest.state, fragment_id=rest.fragment_id)
        return await self.tab.rerun(*states, **how)

    async def translate(self):
        self.sentence, self.step = next(self.own), 0
        box = self.tab.widgets["source"]
        return await self.rerun(WidgetState(id=box.id, string_value=self.sentence), fragment_id=box.fragment_id)

    async def go(self):
        """Step where the charts follow by themselves, else ask for it as the stepper in a browser does."""
        n_steps = len(payload(self.tab.widgets[STEPPER].data)["run"]["target"])
        self.step = self.dice.choice([step for step in range(n_steps) if step != self.step])
        written = at_step(self.tab.query, self.step)
        rest = rest_on(self.tab.widgets, self.step, when=time.monotonic_ns(), written=written)
        if not rest.alone:
            return await self.rerun(rest.state, fragment_id=rest.fragment_id)
        self.tab.query, self.untold = written, rest
        self.tab.links = {page: at_step(query, self.step) for page, query in self.tab.links.items()}
        return Rerun()

    async def choose(self):
        """Choose a layer, and then heads of it."""
        key, count = ("head", 4) if self.has_layer else ("layer", 3)
        self.has_layer = True
        return await self.pick(key, str(self.dice.randint(1, count)))

    async def part(self):
        key = next(key for key in PARTS if key in self.tab.widgets)
        return await self.pick(key, self.dice.choice(PARTS[key]))

    async def pick(self, key, name):
        """Click one of the choices of a control, or take the one of a menu that ends so: "Layer 2"."""
        widget = self.tab.widgets[key]
        state = WidgetState(id=widget.id)
        if widget.options:
            state.string_value = next(option for option in widget.options if option.endswith(name))
        else:
            state.string_array_value.data.append(name)
        return await self.rerun(state, fragment_id=widget.fragment_id)

    async def turn(self):
        self.page = (self.page + 1) % len(PAGES)
        return await self.rerun(page=PAGES[self.page])


def at_step(query, step):
    """A query that says a step, from 0; the first one is not said."""
    others = [(name, value) for name, value in parse_qsl(query, keep_blank_values=True) if name != "step"]
    return urlencode([*others, ("step", str(step + 1))] if step else others)


def foreign(answer, trace, *, beside=()):
    """What in an answer is not of the run of the visitor's sentence; masks may show a longer one of its batch."""
    found, given = [], {key: payload(data) for key, data in answer.drawn.items() if key in (STEPPER, *MAPS)}
    if STEPPER in given:
        shown = [[chip["piece"] for chip in given[STEPPER]["run"][side]] for side in ("source", "target")]
        found += [shown] * (shown != [list(trace.src_tokens), list(trace.tgt_tokens)])
    expected = [list(trace.src_tokens), list(trace.read_tokens), labels_of(trace)]
    others = [axis for one in beside for axis in (list(one.read_tokens), labels_of(one))]
    for key in given.keys() - {STEPPER}:
        found += [(key, axis) for axis in axes(given[key]) if axis not in expected + others * (key in MASKS)]
    if "candidates" in answer.drawn:
        meta = json.loads(payload(answer.drawn["candidates"])["figure"])["layout"]["meta"]
        listed = [row[1] for row in meta["table"]["rows"]]
        found += [listed] * (listed != [one.piece for one in trace.step(answer.step, top_k=10).candidates])
    return found


def labels_of(trace):
    return [str(label) for label in trace.row_labels()]


def axes(given):
    """The labels of a map's rows and columns without their numbers and without padding."""
    meta = json.loads(given["figure"])["layout"]["meta"]
    cells, grid = meta.get("cells", {}), meta.get("grid", {})
    for labels in (cells.get("rows"), cells.get("columns"), grid.get("queries"), grid.get("keys")):
        plain = [html.unescape(label.partition(": <b>")[2].removesuffix("</b>")) for label in labels or ()]
        yield from [[label for label in plain if not label.startswith("<pad>")]] * (labels is not None)


@pytest.fixture(scope="module")
def run():
    """A function that translates a sentence here, as the server does."""
    torch.set_num_threads(1)  # where two pieces are equally probable, the last digit decides
    return load(FOLDER / "zh-en").run


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serve("app.py", log=tmp_path_factory.mktemp("load") / "app.log") as running:
        yield running


@pytest.fixture(scope="module")
def visits(server):
    """What each of several visitors saw who go round all pages at the same time."""

    async def everybody():
        return await asyncio.gather(*(Visitor(number).visit(server.url) for number in range(N_VISITORS)))

    return asyncio.run(everybody())


def test_nobody_sees_an_error_or_what_is_anothers_though_all_do_what_they_are_for(visits, run):
    examples = load(FOLDER / "zh-en").card.examples
    traces = {text: run(text) for text in (*examples, *(one.sentence for each in visits for one in each)) if text}
    beside = [traces[example] for example in examples]
    for answers in visits:
        assert [answer.error for answer in answers if answer.error] == []
        assert [foreign(one, traces[one.sentence or examples[0]], beside=beside) for one in answers] == [[]] * len(
            answers
        )
        done = [answer.action for answer in answers]
        assert {"open", *ROUND} == set(done)
        assert {key for answer in answers for key in answer.drawn} >= DRAWN
        assert len({answer.sentence for answer in answers}) == done.count("translate") + 1


def test_another_visitors_answer_and_another_step_are_noticed(visits, run):
    """Each part alone: the stepper, each map, and the candidates of a step."""
    mine, theirs = visits[0], visits[1]
    trace = run(next(answer.sentence for answer in mine if answer.sentence))
    for key in (STEPPER, "cross_map", "candidates", "overview_encoder", "mask_bool"):
        answer = next(answer for answer in theirs if key in answer.drawn and answer.sentence)
        swapped = replace(answer, drawn={key: answer.drawn[key]}, step=min(answer.step, trace.n_steps - 1))
        assert foreign(swapped, trace), key
    answer = next(a for a in mine if a.sentence and "candidates" in a.drawn)
    trace = run(answer.sentence)
    assert foreign(answer, trace) == []
    assert foreign(replace(answer, step=(answer.step + 1) % trace.n_steps), trace)


def test_no_two_visitors_have_the_same_sentence():
    taken = [list(itertools.islice(sentences(visitor, 7, seed=1), 400)) for visitor in range(7)]
    assert len(set(itertools.chain(*taken))) == 7 * 400
    assert all(text.startswith(tuple(SENTENCES)) for text in taken[0])


def test_another_sentence_draws_neither_the_sidebar_nor_the_page_around_it_again(server):
    with RawClient(server.url) as client:
        opened = client.rerun(page="step")

        def typed(text):
            box = client.widgets["source"]
            return client.rerun(states=[WidgetState(id=box.id, string_value=text)], fragment_id=box.fragment_id)

        translated, nothing, again = typed("我喜欢喝绿茶。"), typed(""), typed("你好。")
        switched = typed("Hello, how are you?")  # another checkpoint reads it: the whole page is of that one
    choices = opened.elements.count("selectbox")  # the checkpoint is one of them
    for rerun in (translated, nothing, again):
        assert "text_input" in rerun.elements
        assert rerun.elements.count("selectbox") < choices
    assert switched.elements.count("selectbox") == choices
    assert "stepper" not in nothing.drawn
    assert len({rerun.drawn["stepper"] for rerun in (opened, translated, again, switched)}) == 4
