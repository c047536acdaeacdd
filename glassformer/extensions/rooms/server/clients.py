"""How often a client of a room, which is an address of the network, may ask: all pupils of a school may share one.

So a limit of what a class does is as high as a whole class needs at once, for one client and one room together. Of an
address only a number is kept that means nothing outside of this process.

Knows nothing of Streamlit.
"""

import hashlib
import secrets
from collections.abc import Callable
from contextlib import suppress
from ipaddress import IPv6Address
from typing import Final

from glassformer.extensions.rooms.server.room import Bucket

# How many at once, and a second: rooms of a visitor, codes that are no room's, and what a whole class does in a room.
LIMITS: Final = {"open": (10, 0.05), "miss": (20, 0.5), "join": (100, 4.0), "vote": (100, 4.0)}
MOST_KNOWN: Final = 5000
_LOCAL: Final = "127.0.0.1"
_SALT: Final = secrets.token_bytes(16)


def client(address: object) -> str:
    """What an address counts as: of IPv6 its network of 64 bits, as whoever has one address there has all."""
    name = str(address or _LOCAL).removeprefix("::ffff:").partition("%")[0]
    with suppress(ValueError):  # of IPv4, or whatever a proxy says
        name = _LOCAL if name == "::1" else IPv6Address(name).exploded[:19]
    return hashlib.blake2s(name.encode(), key=_SALT, digest_size=8).hexdigest()


class Limits:
    """A bucket for each that asks for something; not locked, whoever holds it is."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._buckets = clock, dict[tuple[str, ...], Bucket]()  # who asked last stands last

    def take(self, what: str, who: str, room: str = "") -> bool:
        """Take one; whether there was one. Nothing limits who is unknown."""
        if not who:
            return True
        most, per_second = LIMITS[what]
        bucket = self._buckets.pop((what, who, room), None) or Bucket(most, per_second=per_second, clock=self._clock)
        self._buckets[what, who, room] = bucket
        if len(self._buckets) > MOST_KNOWN:
            del self._buckets[next(iter(self._buckets))]
        return bucket.take()
