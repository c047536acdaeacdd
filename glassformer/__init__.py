"""The app, the command and their extensions; folders of its files, and a check of the package transformer."""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

_FOUND = getattr(find_spec("transformer"), "origin", None) or "transformer"
if Path(_FOUND).resolve() != Path(__file__).resolve().parents[1] / "transformer" / "__init__.py":
    _SAID = (
        f"{_FOUND} is another package called transformer and hides Glassformer's: start Python in another folder or"
        " with -P, or rename that one."
    )
    # The command has this to say and no more; code that imports the package gets an error to handle.
    raise SystemExit(f"error: {_SAID}") if Path(sys.argv[0]).stem in ("-m", "glassformer") else ImportError(_SAID)

# Folders of files that are not modules: in a checkout they are next to the package, in an installed one within it.
PACKAGE: Final = Path(__file__).resolve().parent
APP: Final = PACKAGE / "installed" if (PACKAGE / "installed").is_dir() else PACKAGE.parent
SHIPPED: Final = APP / "checkpoints"
