"""Folders of files that are not modules: Streamlit's scripts, static files, the bundled checkpoints.

In a checkout they are next to the package, in an installed one within it.
"""

from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).resolve().parent
APP: Final = PACKAGE / "installed" if (PACKAGE / "installed").is_dir() else PACKAGE.parent
SHIPPED: Final = APP / "checkpoints"
