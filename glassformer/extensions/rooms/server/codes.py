"""Names that nobody guesses: the code of a room, which is read from a wall and typed, a student's token, a secret."""

import hmac
import re
import secrets
from typing import Final

ALPHABET: Final = "ACDEFGHJKMNPRTUWXY3479"  # none that is read as another: 0 O Q, 1 I L, 2 Z, 5 S, 6 G, 8 B, U V
LENGTH: Final = 6
_CODE = re.compile(f"[{ALPHABET}]{{{LENGTH}}}")
_LONGEST_TYPED = 20
_TOKEN = re.compile(r"[A-Za-z0-9_-]{22}")


def new_code() -> str:
    """A code: one of 113 million."""
    return "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))


def read_code(typed: str) -> str:
    """The code that somebody typed, in any case, with spaces or hyphens; "" for what is none."""
    found = re.sub(r"[\s-]", "", typed[:_LONGEST_TYPED]).upper()
    return found if _CODE.fullmatch(found) else ""


def new_token() -> str:
    """A token, or a secret: 128 random bits."""
    return secrets.token_urlsafe(16)


def is_token(found: object) -> bool:
    """Whether something has the form of a token."""
    return isinstance(found, str) and _TOKEN.fullmatch(found) is not None


def alike(secret: str, found: str) -> bool:
    """Whether two secrets are one; how long that takes does not tell how much of them is."""
    return hmac.compare_digest(secret.encode(), found.encode("utf-8", "replace"))
