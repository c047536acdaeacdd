"""From files that were handed in to one folder that can be opened, or to the sentence that says why not.

This runs in the process that `worker` forks, and trusts nothing: neither names, nor archives, nor what is in files.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from glassformer.extensions.importers.library import opening
from glassformer.extensions.importers.library.opening import QuestionsError, kind_of
from glassformer.extensions.uploads.library import canonical
from glassformer.extensions.uploads.library.archives import OURS, Limits, check_all_differ, check_name, is_junk, unpack
from transformer.checkpoint.load import load as native_load
from transformer.errors import CheckpointError, shown
from transformer.files.kinds import PICKLED, is_archive, looked_at
from transformer.i18n import Sentence, joined, say, say_n

MOST_NAMED = 6
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Received:
    """A file that was handed in."""

    name: str  # what its owner calls it
    path: Path  # where it is


@dataclass(frozen=True)
class Read:
    """What became of an upload."""

    native: bool  # whether it is a checkpoint of this program
    left_out: tuple[str, ...]  # names of the files that are no part of it


def read(
    received: Sequence[Received],
    folder: Path,
    *,
    work: Path,
    pickles: bool = True,
    limits: Limits = OURS,
    progress: Progress = lambda *_: None,
) -> Read:
    """Write what was handed in anew, and make sure that it opens, or refuse it.

    Both folders are empty; the name of the new one is how messages call the model, and `work` is for what is needed
    meanwhile. `progress` is told how many files of how many are done, and which is next.
    """
    files, left_out = _files(received, work, limits)
    _check_sizes(files, limits)
    chosen = {name: path for name, path in files.items() if canonical.is_opened(name, path)}
    left_out += [name for name in files if name not in chosen and not is_junk(name)]
    _check_kinds(files, chosen, left_out, pickles=pickles)
    # The weights last: a wrong word in a config is found at once.
    order = sorted(chosen, key=lambda name: (canonical.kind(name, chosen[name]) in canonical.WEIGHTS, name))
    for done, name in enumerate(order):
        progress(done, len(order) + 1, name)
        with_room = Path(mkdtemp(dir=work))
        canonical.write(name, chosen[name], folder, work=with_room)
        shutil.rmtree(with_room)
    progress(len(order), len(order) + 1, folder.name)
    return Read(_opens(folder), tuple(left_out))


def _files(received: Sequence[Received], work: Path, limits: Limits) -> tuple[dict[str, Path], list[str]]:
    """Every file by its name, archives unpacked; and the names of those that archives have in other folders."""
    found: list[tuple[str, Path]] = []
    left_out: list[str] = []
    for number, one in enumerate(received):
        check_name(one.name)
        if not is_archive(one.name, one.path):
            found.append((one.name, one.path))
            continue
        inner = work / f"unpacked-{number}"
        inner.mkdir()
        with one.path.open("rb") as file:
            unpacked = unpack(file, inner, label=one.name, limits=limits)
        found += unpacked.files.items()
        left_out += unpacked.left_out
    check_all_differ(name for name, _ in found)
    return dict(found), left_out


def _check_sizes(files: Mapping[str, Path], limits: Limits) -> None:
    if len(files) > limits.files:
        raise CheckpointError(
            "{found:,} files were uploaded together; at most {most} are allowed.", found=len(files), most=limits.files
        )
    total = sum(path.stat().st_size for path in files.values())
    if total > limits.unpacked:
        raise CheckpointError(
            "The files take up {found:,} bytes in total; at most {most:,} are allowed.",
            found=total,
            most=limits.unpacked,
        )


def _check_kinds(
    files: Mapping[str, Path], chosen: Mapping[str, Path], left_out: Sequence[str], *, pickles: bool
) -> None:
    """Refuse what cannot become a model before anything of it is read."""
    ending = {name: canonical.kind(name, path) for name, path in chosen.items()}
    weights = [name for name in chosen if ending[name] in canonical.WEIGHTS]
    refused = [name for name in weights if ending[name] in PICKLED]
    if refused and not pickles:
        raise CheckpointError(
            "{name}: this server does not accept torch.save files; save the weights as safetensors.",
            name=shown(refused[0]),
        )
    if weights:
        return
    for name, path in files.items():
        if name.endswith(".index.json"):
            raise CheckpointError(
                "{name}: says that the weights are in other files, but none of those was uploaded; add them.", name=name
            )
        if (problem := looked_at(path, name)[1]) is not None:
            raise CheckpointError("{name}: {problem}", name=name, problem=problem)
    names = [*chosen, *left_out]
    there = _named(names) if names else say("nothing")
    raise CheckpointError(
        "None of the files contains weights ({names}). Add one that was saved as safetensors or with torch.save, "
        "or upload a zip archive with all files.",
        names=there,
    )


def _named(names: Sequence[str]) -> Sentence:
    named = joined(", ", map(shown, names[:MOST_NAMED]))
    more = len(names) - MOST_NAMED
    if more <= 0:
        return named
    return say_n("{names} and {n} more", "{names} and {n} more", more, names=named)


def _opens(folder: Path) -> bool:
    """Open it once, or refuse what no answer opens; whether it is a checkpoint of this program."""
    native = kind_of(folder, inside=folder)[0] == "native"
    try:
        (native_load if native else opening.load)(folder, inside=folder)
    except QuestionsError:
        return False  # the page asks them
    return native
