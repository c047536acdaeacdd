"""Folders of what is no module: the scripts that Streamlit runs, static files, the checkpoints that come along.

In a checkout they are beside the package, in an installed one within it.
"""

from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).resolve().parent
APP: Final = PACKAGE / "installed" if (PACKAGE / "installed").is_dir() else PACKAGE.parent
SHIPPED: Final = APP / "checkpoints"
