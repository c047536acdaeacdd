"""While the rooms' store is away, slow, emptied or started anew all goes on, and then all is back."""

import asyncio
import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis

from glassformer.extensions.replicas import store_redis, store_shared
from glassformer.extensions.rooms import registry
from glassformer.extensions.rooms.room import Room, RoomRefusedError, Round
from glassformer.extensions.rooms.routes import stream
from tests.extensions.replicas.redis_server import RedisServer
from tests.extensions.replicas.room_stores import ASKED, agree, opened, refused, replicas
from tests.glassformer.waiting import WAIT, until


def end_and_start(server, seconds=0.3):
    server.stop()
    time.sleep(seconds)
    server.start()


def stay_away(server):
    end_and_start(server, 3)


def pause(server):
    server.pause()
    time.sleep(store_shared.BEAT_SECONDS + 2.5)
    server.pause(False)


def voted(rooms, code, token):
    """Vote until it is counted, as browsers do."""
    try:
        rooms.vote(code, token, round_=1, choice=1)
    except RoomRefusedError as refusal:
        if refusal.why not in ("away", "voted", "too-often"):
            raise
        return refusal.why == "voted"
    return True


@pytest.mark.parametrize(
    ("happens", "kept"),
    [
        (end_and_start, True),
        (RedisServer.empty, False),
        (pause, False),
        pytest.param(stay_away, False, marks=pytest.mark.deep),
    ],
)
def test_whatever_happens_to_the_store_all_is_back(tmp_path, happens, kept):
    with RedisServer(tmp_path, kept=kept) as server, replicas(server.url) as two:
        taught = opened(*two)
        tokens = [two[n % 2].join(taught.code) for n in range(12)]
        for n, token in enumerate(tokens[:6]):
            two[n % 2].vote(taught.code, token, round_=1, choice=0)
        agree(*two, taught.code)
        gone = two[0].open()
        until(lambda: two[1].public(gone.code))
        two[1].end(gone)
        until(lambda: two[0].public(gone.code) is None)
        with two[0].listening(taught.code, tokens[0], lambda: None, counts=False):
            happens(server)
            until(lambda: not any(one.store.away for one in two))
            until(lambda: all(one.counted(taught.code).students == 1 for one in two))
            for n, token in enumerate(tokens):
                until(lambda n=n, token=token: voted(two[n % 2], taught.code, token))
            agree(*two, taught.code)
            assert two[0].counted(taught.code).voted == 12
            two[1].do(taught, Room.show)
            agree(*two, taught.code)
        assert two[0].public(taught.code).shown == (Round(12, (6, 6, 0)),)
        assert [one.public(gone.code) for one in two] == [None, None]
        with replicas(server.url, 1) as [new]:
            until(lambda: new.public(taught.code) == two[0].public(taught.code))


def test_a_store_that_ends_again_while_it_gets_its_rooms_back_gets_them_later(own_server, monkeypatch):
    with replicas(own_server.url, 1) as [rooms]:
        taught = [rooms.open() for _ in range(3)]
        rooms.do(taught[2], Room.ask, ASKED)
        link, asked = rooms.store._link, []
        change = link.change

        def failing(*args, **named):
            asked.append(named)
            if len(asked) == 2:
                raise OSError("gone again")
            return change(*args, **named)

        monkeypatch.setattr(link, "change", failing)
        own_server.empty()
        until(lambda: len(asked) >= 4 and not rooms.store.away)  # one, one in vain, and the two that are left
        with replicas(own_server.url, 1) as [new]:
            until(lambda: len(new) == 3)
            assert new.public(taught[2].code) == rooms.public(taught[2].code)


def test_a_room_that_cannot_be_read_leaves_the_others_as_they_are(two, redis_server):
    here, there = two
    taught = opened(here, there)
    with redis.Redis.from_url(redis_server.url) as asked:
        asked.hset(f"{store_redis.PREFIX}room:ACDEFG", mapping={"rev": 3, "by": "x", "public": '["Later",[]]'})
        asked.zadd(store_redis.ROOMS, {"ACDEFG": time.time() + 1000})
        time.sleep(store_shared.BEAT_SECONDS + 0.5)
        refused("no-room", here.join, "ACDEFG")
        token = here.join(taught.code)
        with here.listening(taught.code, token, lambda: None, counts=False):
            until(lambda: there.counted(taught.code).students == 1)
        with replicas(redis_server.url, 1) as [new]:
            assert new.public(taught.code) == here.public(taught.code)
            assert len(new) == 1


def test_who_hears_nothing_any_more_listens_anew(redis_server, monkeypatch):
    """As where a network has dropped a connection, and told neither end."""
    monkeypatch.setattr(store_shared, "SILENT_SECONDS", 2 * store_shared.HEAR_SECONDS)
    redis_server.empty()
    hearing, made = store_redis.RedisClient.hearing, []

    def heard_once(link):
        made.append(hearing(link))
        if len(made) == 1:
            monkeypatch.setattr(made[0], "get_message", lambda timeout, **_: time.sleep(timeout))
        return made[-1]

    monkeypatch.setattr(store_redis.RedisClient, "hearing", heard_once)
    with replicas(redis_server.url, 1) as [deaf], replicas(redis_server.url, 1) as [other]:
        taught = other.open()
        token = other.join(taught.code)
        with other.listening(taught.code, token, lambda: None, counts=False):
            until(lambda: deaf.counted(taught.code).students == 1)


def test_where_the_store_is_slow_a_change_waits_for_those_before_it(two, monkeypatch):
    taught = opened(*two)
    change = two[0].store._link.change
    monkeypatch.setattr(store_shared, "TRY_SECONDS", 0.3)
    monkeypatch.setattr(two[0].store._link, "change", lambda *of, **named: time.sleep(0.15) or change(*of, **named))
    with ThreadPoolExecutor(6) as pool:
        tokens = list(pool.map(two[0].join, [taught.code] * 6))
    agree(*two, taught.code)
    until(lambda: all(two[1].store.rooms[taught.code].knows(token) for token in tokens))  # which `agree` does not see


def test_a_store_that_has_lost_the_latest_gets_it_back(two, redis_server):
    taught = opened(*two)
    with redis.Redis.from_url(redis_server.url, decode_responses=True) as asked:
        name = f"{store_redis.PREFIX}room:{taught.code}"
        before = asked.hgetall(name)
        two[0].do(taught, Room.move, "masks", {})
        two[0].do(taught, Room.show)
        until(lambda: two[1].public(taught.code) == two[0].public(taught.code))
        with asked.pipeline(transaction=True) as at_once:  # a replica that looks in between would take it for ended
            at_once.delete(name).hset(name, mapping=before).execute()
        two[1].do(taught, Room.move, "step", {})
        public = two[1].public(taught.code)
        assert (public.moves, public.taken, len(public.shown)) == (2, False, 1)
        agree(*two, taught.code)


def test_while_the_store_is_away_nothing_waits_and_all_can_be_read(own_server):
    with replicas(own_server.url) as (here, there):
        taught, woken = opened(here, there), threading.Event()
        token = here.join(taught.code)
        with here.listening(taught.code, token, woken.set, counts=False):
            own_server.pause()
            woken.clear()
            refused("away", here.vote, taught.code, token, round_=1, choice=0)
            assert woken.is_set()
            began = time.monotonic()
            for call, *of in ((here.open,), (here.end, taught), (here.do, taught, Room.show), (here.join, taught.code)):
                refused("away", call, *of)
            for code, who in (("ACDEFG", ""), (taught.code, registry.new_token())):
                refused("away", here.listening(code, who, lambda: None, counts=False).__enter__)
            assert here.public(taught.code).question == ASKED
            assert here.counted(taught.code).students == 1
            assert here.store.away == f"127.0.0.1:{own_server.port}"
            assert time.monotonic() - began < 7 * store_redis.CALL_SECONDS  # as it takes where each call waits
            own_server.pause(False)
            until(lambda: not here.store.away)
        with contextlib.suppress(RoomRefusedError):  # the first may have been counted after all
            here.vote(taught.code, token, round_=1, choice=0)
        assert here.counted(taught.code).voted == 1


def test_a_replica_that_starts_without_its_store_finds_it_later(own_server):
    with replicas(own_server.url, 1) as [other]:
        taught = other.open()
        own_server.stop()
        with replicas(own_server.url, 1) as [late]:
            assert late.store.away
            refused("away", late.listening(taught.code, "", lambda: None, counts=False).__enter__)
            own_server.start()
            until(lambda: late.is_teacher(taught.code, taught.secret))


def test_what_is_due_while_the_store_is_away_is_looked_at_now_and_then(own_server, monkeypatch):
    async def looks():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.5):
                async for _ in stream(here, taught.code, "", counts=False):
                    pass

    with replicas(own_server.url) as (here, there):
        taught, asked = opened(here, there), []
        here.do(taught, lambda room: room.start(0.5, 0))
        own_server.stop()
        until(lambda: here.store.away and not here.left(here.public(taught.code)))
        public = here.public
        monkeypatch.setattr(here, "public", lambda *of, **named: asked.append(of) or public(*of, **named))
        asyncio.run(looks())
        assert 2 <= len(asked) <= 10
        own_server.start()
        until(lambda: here.public(taught.code).shown)


def test_a_stream_stays_open_and_says_that_the_store_is_away_and_back(own_server):
    async def heard():
        found = []
        async with asyncio.timeout(WAIT):
            async for part in stream(here, taught.code, "", counts=False):
                kind = part.decode().partition("event: ")[2].partition("\n")[0]
                found += [kind] if kind not in ("", "room") else []
                if kind == "room" and found == ["hello"]:
                    own_server.stop()
                elif kind == "away":
                    own_server.start()
                elif kind == "hello" and "away" in found:
                    here.end(taught)
        return found

    with replicas(own_server.url) as (here, there):
        taught = opened(here, there)
        assert asyncio.run(heard()) == ["hello", "away", "hello", "ended"]
