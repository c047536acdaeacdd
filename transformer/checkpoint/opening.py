"""Open any model: a checkpoint folder, a snapshot of its training, or what an extension has a format for.

transformer.load("runs/my-model")                               a folder
transformer.load("zh-en")                                       a checkpoint that comes along
transformer.load("runs/reverse@1200")                           a snapshot of a training, at its step 1,200
transformer.load("runs/model.pt", answers={"n_heads": 4, ...})  another format, whose open questions are answered
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from transformer.checkpoint import load as native
from transformer.checkpoint.free_memory import CPU, Device, Progress, silent
from transformer.checkpoint.listing import Format, LoadOptions
from transformer.checkpoint.load import CONFIG, WEIGHTS, Checkpoint
from transformer.checkpoint.named import check_name, named
from transformer.errors import CheckpointError
from transformer.extensions import provided
from transformer.files.untrusted_folder import as_typed

NO_ANSWERS: Final[Mapping[str, Any]] = MappingProxyType({})


def load(
    source: Path | str,
    *,
    answers: Mapping[str, Any] = NO_ANSWERS,
    given: Any = None,
    inside: Path | None = None,
    progress: Progress = silent,
    device: Device = CPU,
) -> Checkpoint:
    """Load a checkpoint: a folder of this program, or of another format, or the name of one that comes along.

    Args:
        answers: Answers to the open questions of another format.
        given: Files that it lacks, such as `transformer.Given`.
        inside: The real path of a folder that it may not leave by a link; None if any will do.
        progress: Called with the bytes loaded so far and their total.
        device: Where the model computes; see `transformer.checkpoint.load.load`.

    Raises:
        UnansweredError: Questions are open; `transformer.QuestionsError` lists them with their choices.
        CheckpointError: It cannot be used; the error says which file and why.
    """
    place = Path(source) if inside else named(source)
    check_name(place)
    other: Format | None = next((one for one in provided("formats") if one.reads(place, inside=inside)), None)
    if other is not None:
        return other.load(place, LoadOptions(answers, given, inside, progress, device))
    if answers or given:
        raise CheckpointError(
            "{folder}: is already a checkpoint of this program, so there are no questions; remove the answers "
            "and the tokenizers.",
            folder=as_typed(place, inside),
        )
    if place.name in (CONFIG, WEIGHTS) and place.is_file():  # means the folder around it
        place = place.parent
    return native.load(place, inside=inside, progress=progress, device=device)
