"""Redis client of the room store: Lua scripts with optimistic locking, and notifications of changes.

    glassformer:1:boot          changes if the server has lost its data
    glassformer:1:rooms         the codes of all rooms, each with its expiry time
    glassformer:1:room:CODE     the fields of a room's state; `rev`, which grows with each change; `by`, the change
    glassformer:1:news:DB       the channel of change notifications: channels are shared by all databases

The 1 is the version of this format; another format needs another number. Source: Redis, "Scripting with Lua": a
script is atomic. Knows nothing of rooms, and nothing of Streamlit.
"""

import re
import secrets
from collections.abc import Collection, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

CONNECT_SECONDS, CALL_SECONDS = 1.0, 2.0
PREFIX: Final = "glassformer:1:"
BOOT, ROOMS = f"{PREFIX}boot", f"{PREFIX}rooms"
REV, BY = "rev", "by"
ERRORS: Final = (redis.RedisError, OSError)
# Keys: a room, all rooms. What follows the numbers below: names and texts to be set, then names to be removed.
_CHANGE: Final = """
local code, was, new, by, now, seconds, most, news, n = unpack(ARGV, 1, 9)
local found = redis.call('HMGET', KEYS[1], 'rev', 'by')
if found[2] == by then return 1 end
local rev = tonumber(found[1] or '0')
if was == '' then
  if rev >= tonumber(new) then return 0 end
  redis.call('DEL', KEYS[1])
elseif rev ~= tonumber(was) then return 0 end
if was == '0' then
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', '(' .. now)
  if redis.call('ZCARD', KEYS[2]) >= tonumber(most) then return 0 end
end
redis.call('HSET', KEYS[1], 'rev', new, 'by', by)
for i = 10, 9 + n, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
for i = 11 + n, #ARGV do redis.call('HDEL', KEYS[1], ARGV[i]) end
redis.call('EXPIRE', KEYS[1], seconds)
redis.call('ZADD', KEYS[2], now + seconds, code)
redis.call('PUBLISH', news, ARGV[10 + n])
return 1
"""
_END: Final = """
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('PUBLISH', ARGV[2], ARGV[3])
"""


def _client(url: str, *, again: int) -> Any:
    """A lazily connected client that answers soon or fails. Raises `ValueError`: the URL is invalid."""
    found = urlsplit(url)
    if found.scheme != "unix" and not re.fullmatch(r"(/\d*)?", found.path):
        raise ValueError(f"{found.path} is no number of a database")
    return redis.Redis.from_url(
        url,
        decode_responses=True,
        socket_connect_timeout=CONNECT_SECONDS,
        socket_timeout=CALL_SECONDS,
        health_check_interval=5,
        retry=Retry(NoBackoff(), again, supported_errors=(redis.ConnectionError,)),
    )


class RedisClient:
    """The server. All calls raise one of `ERRORS` if it does not answer."""

    def __init__(self, url: str, *, most: int, seconds: int) -> None:
        self._most, self._seconds = most, seconds
        self._client = _client(url, again=1)  # a connection may have been closed since it was last used
        self._hearing = _client(url, again=0)  # the listener must know that it may have missed messages
        self._change, self._end = self._client.register_script(_CHANGE), self._client.register_script(_END)
        found = self._client.connection_pool.connection_kwargs
        self._news = f"{PREFIX}news:{found.get('db', 0)}"
        self.host = str(found.get("path") or f"{found.get('host', 'localhost')}:{found.get('port', 6379)}")

    def change(
        self,
        code: str,
        *,
        was: int | None,
        new: int,
        now: float,
        said: Mapping[str, str],
        gone: Collection[str],
        news: str,
    ) -> bool:
        """Change a room from one `rev` to another and publish it; returns whether the room was at the first `rev`.

        `rev` 0 creates a room, if there is space. None restores a whole room, unless a newer one exists.
        """
        pairs = [part for pair in said.items() for part in pair]
        before, change = "" if was is None else was, secrets.token_hex(8)
        about = (code, before, new, change, now, self._seconds, self._most, self._news)
        return bool(self._change([f"{PREFIX}room:{code}", ROOMS], [*about, len(pairs), *pairs, news, *gone]))

    def end(self, code: str, *, news: str) -> None:
        """Forget a room, and tell so."""
        self._end([f"{PREFIX}room:{code}", ROOMS], [code, self._news, news])

    def room(self, code: str) -> dict[str, str]:
        """The state of a room, with its `rev`; empty if there is none."""
        found: dict[str, str] = self._client.hgetall(f"{PREFIX}room:{code}")
        return found

    def overview(self, now: float) -> tuple[str, float, dict[str, int]]:
        """The boot id, read last; the server's time; the `rev` of each room.

        A restarted server may have an older state with the same boot key, so the id includes its run id.
        """
        with self._client.pipeline(transaction=False) as asked:
            asked.set(BOOT, secrets.token_urlsafe(6), nx=True).time().zrangebyscore(ROOMS, now, "+inf")
            _, (seconds, micros), codes = asked.execute()
            for code in codes:
                asked.hget(f"{PREFIX}room:{code}", REV)
            *revs, boot, about = asked.get(BOOT).info("server").execute()
        there = {code: int(rev) for code, rev in zip(codes, revs, strict=True) if rev is not None}
        return f"{boot or ''}.{about['run_id']}", seconds + micros / 1e6, there

    def publish(self, news: str) -> None:
        """Tell all who hear."""
        self._client.publish(self._news, news)

    def hearing(self) -> Any:
        """What hears from now on; its `get_message` raises if it may have missed something."""
        found = self._hearing.pubsub()
        found.subscribe(self._news)
        if found.get_message(timeout=CALL_SECONDS) is None:
            found.close()
            raise redis.TimeoutError("no answer to SUBSCRIBE")
        return found

    def close(self) -> None:
        """Close all connections."""
        self._client.close()
        self._hearing.close()
