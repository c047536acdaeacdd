"""Ask for the pictures of a run. The code that draws them, in `ui`, is above this library and imported by name."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from transformer.errors import GlassformerError
from transformer.runs.trace import Shown, Trace

_DRAWS = "glassformer.extensions.saving.notebook"


def show(trace: Trace, picture: str, view: Mapping[str, object]) -> Shown:
    """One run; see `Trace.show`."""
    return drawing().show(trace, picture, view)


def compare(left: Trace, right: Trace, picture: str = "step", **view: object) -> Shown:
    """Two runs side by side, for the last line of a notebook's cell; one stepper moves both.

    Args:
        left: One run, a `Trace`; its checkpoint must still be open.
        right: The other run, of the same or of another checkpoint.
        picture, **view: As in `Trace.show`, for both.

    Raises:
        GlassformerError: As in `Trace.show`.
    """
    return drawing().compare(left, right, picture, view)


def drawing() -> Any:
    """The module that draws. Raises GlassformerError if the app is not installed with this library."""
    try:
        return import_module(_DRAWS)
    except ModuleNotFoundError as error:
        raise GlassformerError(
            "pictures of a run are drawn by the app, but its module {name} is missing; `pip install "
            "glassformer` brings it.",
            name=error.name,
        ) from error
