"""Fixtures of tests of rooms."""

from tests.extensions.replicas.room_stores import each_store as each_store
from tests.extensions.replicas.room_stores import own_server as own_server
from tests.extensions.replicas.room_stores import redis_server as redis_server
from tests.extensions.replicas.room_stores import two as two
