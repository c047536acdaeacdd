"""Glassformer: the app and the command, and the extensions of both."""

from pathlib import Path

import transformer

if Path(str(transformer.__file__)).resolve().parents[1] != Path(__file__).resolve().parents[1]:
    raise ImportError(
        f"{transformer.__file__} is another package called transformer and hides Glassformer's: start Python in"
        " another folder or with -P, or rename that one."
    )
