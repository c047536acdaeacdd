"""A replica in a process of its own: it votes with tokens, then listens with them until it is killed.

python -m tests.extensions.replicas.replica URL CODE TOKEN...
"""

import contextlib
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from glassformer.extensions.replicas.store_shared import Shared
from glassformer.extensions.rooms.registry import Registry


def main():
    url, code, *tokens = sys.argv[1:]
    rooms = Registry(store=Shared(url))
    rooms.store.begin()
    print("ready", flush=True)
    sys.stdin.readline()
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(rooms.vote, code, one, round_=1, choice=n % 3) for n, one in enumerate(tokens)]:
            done.result()
    with contextlib.ExitStack() as streams:
        for token in tokens:
            streams.enter_context(rooms.listening(code, token, lambda: None, counts=False))
        print("there", flush=True)
        time.sleep(600)


if __name__ == "__main__":
    main()
