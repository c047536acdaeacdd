"""Command-line and environment options: device, uploads, training, model hub, first model, frame ancestors, hosts.

    streamlit run app.py -- --device cuda               or        GLASSFORMER_DEVICE=cuda
    streamlit run app.py -- --uploads no-pickles        or        GLASSFORMER_UPLOADS=off
    streamlit run app.py -- --training on               or        GLASSFORMER_TRAINING=off
    streamlit run app.py -- --hub fetch                 or        GLASSFORMER_HUB=off
    streamlit run app.py -- --open ORG/NAME             or        GLASSFORMER_OPEN=zh-en
    streamlit run app.py -- --frame-ancestors SOURCES   or        GLASSFORMER_FRAME_ANCESTORS="https://a.example"
    streamlit run app.py -- --allowed-hosts HOSTS       or        GLASSFORMER_ALLOWED_HOSTS="*.a.example"

Unless it is said, models compute on the processor, uploads are on where the server listens on this machine alone, and
off everywhere else; so is training where uploads are. The models in the hub's cache are shown on this machine alone,
and the app fetches none. Without a name the first checkpoint opens. Only the app's own pages frame it, and hosts are
those of Streamlit's `server.allowedHosts`.

Source: Content Security Policy Level 3, 2.3.1 (sources) and 6.4.2 (frame-ancestors).
"""

import ipaddress
import itertools
import os
import re
import sys
from collections.abc import Sequence
from typing import Final, Literal, cast, get_args

import streamlit
import torch

from glassformer.server.streamlit_private import UPLOADS, is_on
from transformer.checkpoint.free_memory import CPU, device_of
from transformer.errors import DataError, shown
from transformer.sandbox import can_limit

DEVICE = "GLASSFORMER_DEVICE", "--device"


def device(arguments: Sequence[str] | None = None) -> torch.device:
    """Where every model of the app computes. A CheckpointError if there is no such device here."""
    return device_of(said(arguments, *DEVICE) or CPU)


def said(arguments: Sequence[str] | None, environment: str, option: str) -> str | None:
    """The operator's value of an option, unparsed; None if not set. The command line overrides the environment."""
    given = values(option, arguments)
    return given[-1] if given else os.environ.get(environment) or None


def values(option: str, arguments: Sequence[str] | None = None) -> list[str]:
    """What the app's command line says of an option, each time; the real one when none is given."""
    words = sys.argv[1:] if arguments is None else arguments
    given = [after for word, after in itertools.pairwise(words) if word == option]
    return given + [word.removeprefix(f"{option}=") for word in words if word.startswith(f"{option}=")]


Mode = Literal["on", "no-pickles", "off"]
ENVIRONMENT, OPTION = "GLASSFORMER_UPLOADS", "--uploads"
MODES: tuple[str, ...] = get_args(Mode)
TRAINING = "GLASSFORMER_TRAINING", "--training"
TRAINING_MODES = ("on", "off")
Hub = Literal["fetch", "cache", "off"]
HUB = "GLASSFORMER_HUB", "--hub"
OPEN = "GLASSFORMER_OPEN", "--open"


def mode(arguments: Sequence[str] | None = None) -> Mode:
    """Which uploads are allowed by the app's command line; the real one by default."""
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


def hub(arguments: Sequence[str] | None = None) -> Hub:
    """Whether visitors see the models in the hub's cache, and may fetch more."""
    asked = said(arguments, *HUB)
    if asked is None:
        return "cache" if is_local() else "off"
    return cast(Hub, asked) if asked in get_args(Hub) else "off"


def opens_first() -> str:
    """The name of the checkpoint that opens where an address names none; "" if that is not said."""
    return said(None, *OPEN) or ""


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


# ------------------------------------------------------------------------------------------------ other origins

FRAME_ANCESTORS = "GLASSFORMER_FRAME_ANCESTORS", "--frame-ancestors"
ALLOWED_HOSTS = "GLASSFORMER_ALLOWED_HOSTS", "--allowed-hosts"
_HOST: Final = r"(?:\*\.)?[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?"
_SOURCE: Final = rf"\*|'self'|https?:(?://{_HOST}(?::(?:\d{{1,5}}|\*))?)?"


def frame_ancestors(arguments: Sequence[str] | None = None) -> str:
    """Whose pages may frame the app, as sources of a Content-Security-Policy. A DataError if one is not a source."""
    examples = "https://moodle.example.org", "https://*.example.org", "https:"
    return " ".join(dict.fromkeys(["'self'", *_listed(arguments, FRAME_ANCESTORS, _SOURCE, examples)]))


def allowed_hosts(arguments: Sequence[str] | None = None) -> list[str]:
    """More hosts than those of Streamlit's option. A DataError if one is not the name of a host."""
    return _listed(arguments, ALLOWED_HOSTS, rf"\*|{_HOST}", ("glass.school.example", "*.hf.space", "*"))


def _listed(
    arguments: Sequence[str] | None, option: tuple[str, str], pattern: str, examples: Sequence[str]
) -> list[str]:
    words = re.split(r"[\s,]+", (said(arguments, *option) or "").lower())  # neither may reach a header
    for word in filter(None, words):
        if not re.fullmatch(pattern, word):
            name, known = " / ".join(option), ", ".join(examples)
            raise DataError(
                "{setting}: {found} cannot be used; write values such as {examples}.",
                setting=name,
                found=shown(word),
                examples=known,
            )
    return list(filter(None, words))
