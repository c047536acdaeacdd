"""How a class comes into a room: the address, as the browsers of a class reach it, and its QR code.

A QR code is black on white, with the quiet zone of four modules, in a dark theme too: readers take nothing else for
granted. Source: ISO/IEC 18004:2015, section 6.3.8 (quiet zone).
"""

import ipaddress
import socket
from html import escape
from typing import Final
from urllib.parse import urlsplit

import segno

from glassformer.extensions.rooms import room_session
from glassformer.shared.i18n import here, st
from glassformer.state.global_params import base
from transformer.i18n import say

_QUIET: Final = 4  # modules around a code
_ELSEWHERE: Final = ("192.0.2.1", 9)  # of RFC 5737: nobody has it, and nothing is sent to it


def class_base() -> str:
    """The address of the app, as other computers reach it, as far as that is known here."""
    found = urlsplit(base())
    if not is_alone(found.hostname or "") or is_alone(str(st.get_option("server.address") or "")):
        return base()
    host, port = own_address(), f":{found.port}" if found.port else ""
    return found._replace(netloc=f"{host}{port}").geturl() if host else base()


def is_alone(host: str) -> bool:
    """Whether a host names the computer that asks, so that a phone that asks finds itself."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def own_address() -> str:
    """This computer's address in its network; "" where it is in none. Nothing is sent for it."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            asked.connect(_ELSEWHERE)
            found = str(asked.getsockname()[0])
    except OSError:
        return ""
    return "" if is_alone(found) else found


def address(code: str) -> str:
    """The address at which a browser joins a room."""
    return f"{class_base()}/?{room_session.PARAMETER}={code}"


def caution() -> None:
    """Say so where the address may be none for a class."""
    if is_alone(urlsplit(class_base()).hostname or ""):
        said = say(
            "This app is open at {address}, which only this computer can reach. For a class, serve the app on "
            "your network (see docs/hosting.md) and open it at its network address.",
            address=base(),
        )
        st.warning(said, icon=":material/wifi_off:")
    elif class_base() != base():
        st.caption(say("{address} is this computer's address on the local network.", address=class_base()))


def qr(text: str, *, where: str) -> str:
    """A QR code as HTML: a picture inside the page, black on white in every theme.

    Its class, `where`, says how large it is.
    """
    made = segno.make_qr(text, error="m")
    uri = made.svg_data_uri(scale=8, border=_QUIET, dark="#000", light="#fff", xmldecl=False)
    said = escape(here(say("QR code of {address}", address=text)))
    return f'<img class="{escape(where)}" src="{escape(uri)}" alt="{said}">'
