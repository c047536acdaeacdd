"""Of many visitors at once on a real server nobody sees what is another's, and the check for that can fail."""

import asyncio
import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetState

from benchmarks.class_at_once import SENTENCES, sentences
from benchmarks.raw_client import RawClient, Rerun
from tests.visitors import PAGES, ROUND, WEIGHTS, Answer, Judge, Visitor, foreign
from tools.serve import Server, serve
from transformer.checkpoint.load import Checkpoint, load

ROOT = Path(__file__).parents[2]
N_VISITORS = 2
DRAWN = {"stepper", "candidates", "cross_map", "overview_cross", "mask_bool", "position_table", "model_diagram"}


@pytest.fixture(scope="module")
def checkpoint() -> Checkpoint:
    return load(ROOT / "checkpoints" / "zh-en")


async def _visit(url: str, number: int) -> list[Answer]:
    visitor = Visitor(number, sentences(number, N_VISITORS, seed=5), n_layers=3, n_heads=4, seed=5)
    answers = [await visitor.open(url), *await visitor.look_round(0)]
    assert visitor.page == "step"
    for action in ROUND * len(PAGES):
        if visitor.can(action):
            answers.append(await visitor.act(action))
    assert visitor.page == "step"  # once around
    await visitor.close()
    return answers


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serve("app.py", log=tmp_path_factory.mktemp("load") / "app.log") as running:
        yield running


@pytest.fixture(scope="module")
def visits(server: Server) -> list[list[Answer]]:
    """What each of several visitors saw who go round all pages at the same time without thinking."""

    async def everybody() -> list[list[Answer]]:
        return await asyncio.gather(*(_visit(server.url, number) for number in range(N_VISITORS)))

    return asyncio.run(everybody())


def test_nobody_sees_an_error_or_what_is_anothers_though_all_do_what_they_are_for(visits, checkpoint):
    judge = Judge(checkpoint)
    for answers in visits:
        assert [answer.error for answer in answers if answer.error] == []
        assert [problem for answer in answers for problem in judge.problems(answer)] == []
        done = [answer.action for answer in answers]
        assert {"open", *WEIGHTS} == set(done)
        assert {key for answer in answers for key in answer.drawn} >= DRAWN
        assert len({answer.sentence for answer in answers}) == done.count("translate") + 1


def test_another_visitors_answer_and_another_step_are_noticed(visits, checkpoint):
    """Each part alone: the stepper, each map, and the candidates of a step."""
    mine, theirs = visits[0], visits[1]
    trace = checkpoint.run(next(answer.sentence for answer in mine if answer.sentence))
    for key in ("stepper", "cross_map", "candidates", "overview_encoder", "mask_bool"):
        answer = next(answer for answer in theirs if key in answer.drawn and answer.sentence)
        swapped = replace(answer, drawn={key: answer.drawn[key]}, step=min(answer.step, trace.n_steps - 1))
        assert foreign(swapped, trace), key
    answer = next(a for a in mine if a.sentence and "candidates" in a.drawn)
    trace = checkpoint.run(answer.sentence)
    assert foreign(answer, trace) == []
    assert foreign(replace(answer, step=(answer.step + 1) % trace.n_steps), trace)


def test_no_two_visitors_have_the_same_sentence():
    taken = [list(itertools.islice(sentences(visitor, 7, seed=1), 400)) for visitor in range(7)]
    assert len(set(itertools.chain(*taken))) == 7 * 400
    assert all(text.startswith(tuple(SENTENCES)) for text in taken[0])


def test_another_sentence_draws_neither_the_sidebar_nor_the_page_around_it_again(server):
    with RawClient(server.url) as client:
        opened = client.rerun(page="step")

        def typed(text: str) -> Rerun:
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
