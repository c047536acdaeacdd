"""What whoever runs the server allows: what may be handed in, and whether models may be trained.

    streamlit run app.py -- --uploads no-pickles        or        GLASSFORMER_UPLOADS=off
    streamlit run app.py -- --training on               or        GLASSFORMER_TRAINING=off

Unless it is said, uploads are on where the server listens on this machine alone, and off everywhere else; so is
training where uploads are.
"""

import ipaddress
from collections.abc import Sequence
from typing import Literal, cast, get_args

import streamlit

from glassformer.server.command_line import said
from glassformer.server.streamlit_private import UPLOADS, is_on
from transformer.sandbox import can_limit

Mode = Literal["on", "no-pickles", "off"]
ENVIRONMENT, OPTION = "GLASSFORMER_UPLOADS", "--uploads"
MODES: tuple[str, ...] = get_args(Mode)
TRAINING = "GLASSFORMER_TRAINING", "--training"
TRAINING_MODES = ("on", "off")


def mode(arguments: Sequence[str] | None = None) -> Mode:
    """What may be handed in, by the app's command line; the real one when none is given."""
    asked = said(arguments, ENVIRONMENT, OPTION)
    if not can_limit() or asked not in (*MODES, None) or not is_on(UPLOADS):
        return "off"
    if asked is not None:
        return cast(Mode, asked)
    return "on" if is_local() else "off"


def trains(arguments: Sequence[str] | None = None) -> bool:
    """Whether visitors may train small models here."""
    asked = said(arguments, *TRAINING)
    if not can_limit() or asked not in (*TRAINING_MODES, None):
        return False
    return mode(arguments) != "off" if asked is None else asked == "on"


def is_local() -> bool:
    """Whether the server listens on this machine alone."""
    address = str(streamlit.get_option("server.address") or "")
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False  # not set: it listens everywhere


def megabytes_of_a_file() -> int:
    """The largest file that Streamlit takes; it is in memory until it is taken over."""
    return int(streamlit.get_option("server.maxUploadSize"))
