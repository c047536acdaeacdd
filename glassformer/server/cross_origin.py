"""Settings of whose pages may frame the app (CSP frame-ancestors), and of more hosts to accept WebSockets for.

    streamlit run app.py -- --frame-ancestors SOURCES   or        GLASSFORMER_FRAME_ANCESTORS="https://a.example"
    streamlit run app.py -- --allowed-hosts HOSTS       or        GLASSFORMER_ALLOWED_HOSTS="*.a.example"

Unless it is said, only the app's own pages frame it, and hosts are those of Streamlit's `server.allowedHosts`.

Source: Content Security Policy Level 3, 2.3.1 (sources) and 6.4.2 (frame-ancestors).
"""

import re
from collections.abc import Sequence
from typing import Final

from glassformer.server.server_options import said
from transformer.errors import DataError, shown

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
