"""A class of 30 and of 100 that translates in the same moment: how long until each has the page of their sentence.

Visitors on the Step page each type a new sentence, all at once; every answer is compared with one that is computed
here. In turns with it as many visitors rerun an empty page of Streamlit, all at once: what a class costs without us.
Visitors share one thread of this process, the server has its own. Not measured: the browser, the network.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import cache

import torch
from streamlit.proto.WidgetStates_pb2 import WidgetState

from benchmarks.harness import CHECKPOINTS, EMPTY_APP, Comparison, Settings, app, percentile, turns
from benchmarks.raw_client import STEPPER, AsyncClient, Rerun, payload
from transformer.checkpoint.load import Checkpoint, load

COUNTS = {30: "at most 0.8 s", 100: "at most 2.0 s"}  # with the aims for the last one
SETTLE_SECONDS = 0.2  # what a server still does after a run
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


def measure(settings: Settings) -> Iterator[Comparison]:
    """The table."""
    with asyncio.Runner() as runner:
        for count, aim in {4: ""}.items() if settings.quick else COUNTS.items():
            with app() as (ours, _), app(EMPTY_APP) as (empty, _):
                pupils, others = (runner.run(_arrived(server.url, count)) for server in (ours, empty))
                own = [sentences(number, count, seed=1) for number in range(count)]
                sides: dict[str, Callable[[], list[float]]] = {
                    "ours": lambda pupils=pupils, own=own: runner.run(_translated(pupils, own)),  # type: ignore[misc]
                    "empty": lambda others=others: runner.run(_rerun(others)),  # type: ignore[misc]
                }
                found = turns(sides, settings.n_turns(7 if count < 50 else 5), warm_up=1)
                runner.run(_left([*pupils, *others]))
            for share, name in ((0.5, "half of them"), (0.95, "95 of 100"), (1.0, "all")):
                mine, theirs = ([percentile(times, share) for times in found[side]] for side in found)
                yield Comparison(
                    what=f"{count} translate at once: {name} have their page after",
                    ours=mine, peer=theirs, peer_name="an empty page", aim=aim if share == 1.0 else "",
                    headline=count == 100 and share == 1.0,
                )  # fmt: skip


def sentences(visitor: int, n_visitors: int, *, seed: int) -> Iterator[str]:
    """Sentences that no other visitor has: two or three of `SENTENCES` one after the other."""
    pairs = list(itertools.permutations(SENTENCES, 2))
    random.Random(seed).shuffle(pairs)
    whole = itertools.chain(pairs, itertools.permutations(SENTENCES, 3))
    yield from ("".join(parts) for parts in itertools.islice(whole, visitor, None, n_visitors))


async def _arrived(url: str, count: int) -> list[AsyncClient]:
    """Visitors, one after the other."""
    clients = [AsyncClient() for _ in range(count)]
    for client in clients:
        await client.connect(url)
        await client.rerun()
    return clients


async def _translated(clients: Sequence[AsyncClient], own: Sequence[Iterator[str]]) -> list[float]:
    """The seconds that each waits for the page of the next sentence, which all type at once."""
    typed = [next(texts) for texts in own]
    boxes = [client.widgets["source"] for client in clients]
    asked = [
        client.rerun(WidgetState(id=box.id, string_value=text), fragment_id=box.fragment_id)
        for client, box, text in zip(clients, boxes, typed, strict=True)
    ]
    answers = await _together(asked)
    for text, answer in zip(typed, answers, strict=True):
        _check(text, answer)
    return [answer.seconds for answer in answers]


async def _rerun(clients: Sequence[AsyncClient]) -> list[float]:
    return [answer.seconds for answer in await _together([client.rerun() for client in clients])]


async def _together(asked: Sequence[Awaitable[Rerun]]) -> list[Rerun]:
    await asyncio.sleep(SETTLE_SECONDS)
    return await asyncio.gather(*asked)


async def _left(clients: Sequence[AsyncClient]) -> None:
    await asyncio.gather(*(client.close() for client in clients))


def _check(text: str, answer: Rerun) -> None:
    """Compare what a visitor was shown with that sentence translated here.

    Raises:
        RuntimeError: It is not that sentence's, or an error.
    """
    torch.set_num_threads(1)  # as the server: where two pieces are equally probable, the last digit decides
    trace = _checkpoint().run(text)
    run = payload(answer.drawn[STEPPER])["run"] if STEPPER in answer.drawn else {}
    shown = [[chip["piece"] for chip in run.get(side, ())] for side in ("source", "target")]
    if answer.errors or shown != [list(trace.src_tokens), list(trace.tgt_tokens)]:
        raise RuntimeError(f"{text} was answered with {shown} {answer.errors}")


@cache
def _checkpoint() -> Checkpoint:
    return load(CHECKPOINTS / "zh-en")
