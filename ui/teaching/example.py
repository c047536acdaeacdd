"""An example of a lesson's file, for whoever writes one; a test reads it."""

from pathlib import Path
from typing import Final

EXAMPLE: Final = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
