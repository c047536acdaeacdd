"""What every widget that chooses something is given."""

from __future__ import annotations

from typing import Final

KEEP: Final = "session"  # a widget keeps its value while another page is looked at
