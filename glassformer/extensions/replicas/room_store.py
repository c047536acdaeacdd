"""The store of rooms that `GLASSFORMER_STORE` names.

GLASSFORMER_STORE=redis://HOST:PORT/DB streamlit run app.py
"""

import os

from glassformer.extensions.rooms.store import RoomStore, StoreError
from glassformer.server.replicas import STORE


def chosen(said: str | None = None) -> RoomStore | None:
    """The store that `GLASSFORMER_STORE` names; None if it names none.

    Raises `StoreError`: the URL is invalid, or its client package is not installed.
    """
    url = os.environ.get(STORE, "") if said is None else said
    if not url:
        return None
    try:
        from glassformer.extensions.replicas.store_shared import Shared

        return Shared(url)
    except ImportError as error:
        raise StoreError(
            "{name} is set, but the package redis is not installed; get it with pip install 'glassformer[hosting]'.",
            name=STORE,
        ) from error
    except ValueError as error:
        raise StoreError(
            "{name} is “{found}”; it must be the address of a Redis or Valkey server, such as redis://127.0.0.1:6379/0.",
            name=STORE,
            found=url.rpartition("@")[2].partition("?")[0],  # without a password
        ) from error
