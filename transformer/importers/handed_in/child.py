"""What the forked process does: confine itself, read what was handed in, and write down what came of it.

It writes `result.json` into its folder, codes and sentences as data, and `progress.json` meanwhile. Nothing that it
writes is trusted by the server; see `workers`.
"""

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from transformer import confined
from transformer.errors import CheckpointError, GlassformerError
from transformer.importers.handed_in import handed_folder
from transformer.importers.handed_in.handed_folder import Received
from transformer.importers.handed_in.handed_limits import Limits
from transformer.importers.handed_in.said import as_data
from words import say

RESULT, PROGRESS = "result.json", "progress.json"
MADE, WORK = "made", "work"


def main(request: Mapping[str, Any]) -> None:
    """Do what one request asks for.

    It has `folder`, which is all that may be written into; `files`, pairs of a name and a path; `title`, the name of
    the new folder; `pickles`; `limits`, those of `Limits`.
    """
    folder, limits = Path(request["folder"]), Limits(**request["limits"])
    received = [Received(name, Path(path)) for name, path in request["files"]]
    made, work = folder / MADE / request["title"], folder / WORK
    made.mkdir(parents=True)
    work.mkdir()
    os.chdir(work)
    os.environ["TMPDIR"] = tempfile.tempdir = str(work)
    done = confined.confine(
        folder, [], memory=limits.memory, seconds=limits.seconds, file_bytes=limits.unpacked + 2**24
    )
    _write(folder / RESULT, {"confined": done} | _result(received, made, work, request["pickles"], limits))


def _result(received: list[Received], made: Path, work: Path, pickles: bool, limits: Limits) -> dict[str, Any]:
    def show(done: int, most: int, name: str) -> None:
        _write(made.parents[1] / PROGRESS, {"done": done, "most": most, "name": name})

    try:
        return asdict(handed_folder.read(received, made, work=work, pickles=pickles, limits=limits, progress=show))
    except GlassformerError as error:
        return {"refused": as_data(error.sentence)}
    except MemoryError:
        return {"refused": as_data(too_much_memory())}
    except RuntimeError as error:  # how torch says it
        if "memory" not in str(error):
            raise
        return {"refused": as_data(too_much_memory())}


def too_much_memory() -> Any:
    """What is said where reading takes too much."""
    return CheckpointError(
        "Reading the files takes more memory than one upload may; put them into a folder of checkpoints instead."
    ).sentence


def _write(path: Path, record: Mapping[str, Any]) -> None:
    """In one step, as somebody may be reading it."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(record), encoding="ascii")
    new.replace(path)


def crashed() -> Any:
    """What is said where the process was ended."""
    return say("The process that read the files was ended, so one of them is damaged; copy or download it again.")
