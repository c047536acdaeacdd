"""Of many visitors at once on a real server nobody sees what is another's, and the check for that can fail."""

import asyncio
import html
import itertools
import json
import time
from dataclasses import dataclass, replace
from functools import cache
from urllib.parse import urlencode

import pytest
import torch
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.exceptions import WebSocketException

from benchmarks.class_at_once import SENTENCES, sentences
from benchmarks.raw_client import STEPPER, AsyncClient, PageFailedError, RawClient, payload, rest_on
from tests.test_checkpoints import FOLDER
from tools.serve import serve
from transformer.checkpoint.load import load

N_VISITORS = 2
STATES = [  # each page that has a run, and parts of it
    ("step", {}),
    *(("attention", {"panel": panel, "layer": 2, "head": 3}) for panel in ("overview", "head", "flow")),
    ("masks", {}),
    ("positions", {}),
    *(("inside", {"inside": part}) for part in ("model", "stream", "lens", "ffn", "pieces")),
]
MASKS = ("mask_bool", "mask_additive")
MAPS = ("cross_map", "head_map", "overview_encoder", "overview_decoder", "overview_cross", *MASKS)
DRAWN = {STEPPER, "candidates", "cross_map", "overview_cross", "head_map", "flow", "mask_bool", "position_table"}


@dataclass(frozen=True)
class Answer:
    """What a visitor was shown of a sentence and a step, from 0: the JSON of each component, by its key."""

    sentence: str
    step: int
    error: str
    drawn: dict[str, str]


async def visit(url, number):
    """Open each page at a step of an own sentence; translate another one there, and step on in it."""
    own, tab, answers = sentences(number, N_VISITORS, seed=5), AsyncClient(), []

    async def ask(sentence, step, *states, **how):
        try:
            result = await tab.rerun(*states, **how)
            answers.append(Answer(sentence, step, "; ".join(result.errors), result.drawn))
        except (PageFailedError, WebSocketException, OSError, TimeoutError) as failure:
            answers.append(Answer(sentence, step, f"{type(failure).__name__}: {failure}", {}))

    await tab.connect(url)
    for page, parameters in STATES:
        first, second = next(own), next(own)
        await ask(first, 1, page=page, query=urlencode({"src": first, "step": 2} | parameters))
        box = tab.widgets["source"]
        await ask(second, 0, WidgetState(id=box.id, string_value=second), fragment_id=box.fragment_id)
        if STEPPER in tab.widgets and not payload(tab.widgets[STEPPER].data)["run"]["still"]:
            rest = rest_on(tab.widgets, 1, when=time.monotonic_ns())
            await ask(second, 1, rest.state, fragment_id=rest.fragment_id)
    await tab.close()
    return answers


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
    return cache(load(FOLDER / "zh-en").run)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serve("app.py", log=tmp_path_factory.mktemp("load") / "app.log") as running:
        yield running


@pytest.fixture(scope="module")
def visits(server):
    """What each of several visitors saw who go round all pages at the same time."""

    async def everybody():
        return await asyncio.gather(*(visit(server.url, number) for number in range(N_VISITORS)))

    return asyncio.run(everybody())


def test_nobody_sees_an_error_or_what_is_anothers(visits, run):
    beside = [run(example) for example in load(FOLDER / "zh-en").card.examples]
    for answers in visits:
        assert [answer.error for answer in answers if answer.error] == []
        assert [wrong for one in answers if (wrong := foreign(one, run(one.sentence), beside=beside))] == []
        assert {key for answer in answers for key in answer.drawn} >= DRAWN
        assert len({answer.sentence for answer in answers}) == 2 * len(STATES)
        assert any(answer.step and STEPPER not in answer.drawn for answer in answers)  # steps that were reported


def test_another_visitors_answer_and_another_step_are_noticed(visits, run):
    """Each part alone: the stepper, each map, and the candidates of a step."""
    mine, theirs = visits[0], visits[1]
    trace = run(mine[0].sentence)
    for key in (STEPPER, "cross_map", "candidates", "overview_encoder", "mask_bool"):
        answer = next(answer for answer in theirs if key in answer.drawn)
        assert foreign(replace(answer, drawn={key: answer.drawn[key]}), trace), key
    assert foreign(mine[0], trace) == []
    assert foreign(replace(mine[0], step=0), trace)


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
