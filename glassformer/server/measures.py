"""Measurements of the server: pages drawn, and how long each took."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Literal

Quantity = Literal["page", "queue", "model"]  # a run of a page, a request's wait for the model, a turn of the model

LISTENERS: Final[list[Callable[[Quantity, float, str], None]]] = []


def took(quantity: Quantity, seconds: float, page: str = "") -> None:
    """Tell how long something took."""
    for listener in LISTENERS:
        listener(quantity, seconds, page)


@contextmanager
def drawn(page: str) -> Iterator[None]:
    """Tell how long a run of a page takes."""
    began = time.monotonic()
    try:
        yield
    finally:
        took("page", time.monotonic() - began, page)
