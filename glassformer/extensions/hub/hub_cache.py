"""Models of the Hugging Face Hub by name: downloaded into the hub's cache, found there, listed and opened.

    transformer.load("Helsinki-NLP/opus-mt-zh-en")      from the cache, else downloaded first
    transformer.pull("Helsinki-NLP/opus-mt-zh-en")      downloaded, or brought up to date; the folder in the cache

`huggingface_hub` fetches, and so decides where the cache is (HF_HOME), which hub is asked (HF_ENDPOINT), whether any is
(HF_HUB_OFFLINE), and with which token. Only files that are read here are fetched, all of one commit, and the weights
last: before them it is known whether the family is, and whether there is room.
"""

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from glassformer.extensions.huggingface.folder import family_of
from glassformer.extensions.huggingface.folder_texts import GENERATION
from glassformer.extensions.importers.library.readers import SUFFIXES
from glassformer.extensions.tokenizers import options
from glassformer.extensions.weight_files.weight_folder import INDEX, INDEX_OF_PICKLED, PICKLED, WHOLE, read_index
from transformer.checkpoint import opening
from transformer.checkpoint.free_memory import Progress, check_disk, silent
from transformer.checkpoint.listing import Entry, Format, LoadOptions, entry_at
from transformer.checkpoint.load import CARD, CONFIG, MAX_CONFIG, Checkpoint, read_config
from transformer.checkpoint.tokenizer_files import TOKENIZER_NAMES, file_names
from transformer.errors import CheckpointError, DataError, shown
from transformer.files.untrusted_folder import FolderFiles
from transformer.i18n import say

NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9_][\w.-]*(@[\w.-]+)?", re.ASCII)
LONGEST: Final = 120
MAIN: Final = "main"
PARTS: Final = {  # an index, and what the files that it names are called; the first that is there counts
    INDEX: re.compile(r"model-\d+-of-\d+\.safetensors"),
    INDEX_OF_PICKLED: re.compile(r"pytorch_model-\d+-of-\d+\.bin"),
}
SMALL: Final = frozenset({CONFIG, CARD, GENERATION, options.CONFIG, options.LIST, options.MAP})
SPARE: Final = 64_000_000  # bytes that stay free on the disk


@dataclass(frozen=True)
class CachedModel:
    """A model in the cache, at one revision."""

    name: str  # such as "Helsinki-NLP/opus-mt-zh-en"
    revision: str  # the commit
    n_bytes: int  # on disk
    family: str  # "marian"; "" if the files do not say
    entry: Entry  # its `error` says why it does not open


def is_available() -> bool:
    """Whether `huggingface_hub` is installed."""
    return find_spec("huggingface_hub") is not None


def is_name(text: str) -> bool:
    """Whether it may be the name of a model of the hub, with or without a revision behind "@"."""
    fits = len(text) <= LONGEST and NAME.fullmatch(text) is not None and ".." not in text and "--" not in text
    return fits and not text.endswith(SUFFIXES)  # a file that is not there


def parted(name: str) -> tuple[str, str]:
    """The name alone, and the revision, `main` unless it is said."""
    alone, _, revision = name.partition("@")
    return alone, revision or MAIN


def cached(name: str) -> Path | None:
    """The folder of a model in the cache; None if it is not there, or not yet with its weights."""
    if not is_available():
        return None
    alone, revision = parted(name)
    folder = _repository(alone)
    try:
        commit = (folder / "refs" / revision).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        commit = revision
    snapshot = folder / "snapshots" / commit
    return snapshot if re.fullmatch(r"[\w.-]+", commit) and _is_whole(snapshot) else None


def pull(
    name: str, *, revision: str = "", again: bool = True, progress: Progress = silent, token: bool | str | None = None
) -> Path:
    """Fetch a model of the hub, or what has changed of it; returns its folder in the cache.

    Args:
        name: As on the hub, such as "Helsinki-NLP/opus-mt-zh-en"; with "@" and a revision, if that is not given.
        revision: A branch, a tag or a commit; `main` by default.
        again: Whether the hub is asked for something newer where the model is in the cache.
        progress: Called with the bytes fetched so far and their total; a bar is drawn if there is a terminal.
        token: As of `huggingface_hub`: None for the one of the usual places, False for none.

    Raises:
        CheckpointError: There is no such model, it is not for everybody, there is no network or no room on the disk,
            or it is of a family that does not open here; the error says which.
    """
    alone, said = parted(name)
    revision = revision or said
    if not is_name(alone):
        raise CheckpointError(
            "{name}: a model of the hub has a name such as Helsinki-NLP/opus-mt-zh-en.", name=shown(name)
        )
    if not is_available():
        raise CheckpointError(
            "{name}: what fetches models of the hub is not installed; pip install 'glassformer[hf]' brings it.",
            name=alone,
        )
    if not again and (there := cached(f"{alone}@{revision}")) is not None:
        return there
    from huggingface_hub import HfApi, hf_hub_download

    with _sentences(alone, revision):
        try:
            about = HfApi(token=token).model_info(alone, revision=revision, files_metadata=True)
        except Exception as error:
            if not _is_away(error) or (there := cached(f"{alone}@{revision}")) is None:
                raise
            return there  # there is no network, and all is there
        folder = Path(hf_hub_download(alone, CONFIG, revision=revision, token=token)).parent
        _check_family(folder)
        sizes = {one.rfilename: one.size or 0 for one in about.siblings or ()}
        left = {file: sizes[file] for file in chosen(alone, sizes) if not (folder / file).exists()}
        done, whole = 0, sum(left.values())
        remedy = say("Make room, or set HF_HOME to another disk.")
        check_disk(folder, whole + SPARE, remedy, label=alone)
        for file, size in sorted(left.items(), key=lambda one: one[1]):
            counted = _counted(done, whole, progress)
            hf_hub_download(alone, file, revision=folder.name, token=token, **counted)
            done += size
            progress(done, whole)
    return folder


def chosen(name: str, files: Collection[str]) -> set[str]:
    """Those of a repository's files that are read: settings, tokenizers, and the weights in one format.

    Raises CheckpointError if there are no weights that open here.
    """
    own = {name for names in TOKENIZER_NAMES.values() for name in names}
    small = {name for name in files if name in SMALL or name in own or name in file_names()}
    if WHOLE in files:
        return small | {WHOLE}
    for index, part in PARTS.items():
        if index in files:
            return small | {index} | {name for name in files if part.fullmatch(name)}
        if index == INDEX and PICKLED in files:
            return small | {PICKLED}
    raise CheckpointError(
        "{name}: has no weights that this program reads ({whole}, {index} or {pickled}); it has {names}.",
        name=name,
        whole=WHOLE,
        index=INDEX,
        pickled=PICKLED,
        names=", ".join(sorted(files)[:8]) or say("no files"),
    )


def models() -> list[CachedModel]:
    """All models in the cache, by name, each at every revision that is there."""
    if not is_available():
        return []
    from huggingface_hub import scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        found = scan_cache_dir(_root())
    except CacheNotFound:
        return []
    listed = [
        CachedModel(
            name=repository.repo_id,
            revision=one.commit_hash,
            n_bytes=one.size_on_disk,
            family=_family(one.snapshot_path),
            entry=entry_of(_called(repository.repo_id, one.refs, one.commit_hash), one.snapshot_path),
        )
        for repository in found.repos
        if repository.repo_type == "model"
        for one in repository.revisions
    ]
    return sorted(listed, key=lambda one: (one.name.lower(), one.revision))


def entry_of(name: str, folder: Path) -> Entry:
    """A model of the cache, as lists of checkpoints have it, with its fault if it would not open."""
    entry = entry_at(folder, name, _root().resolve())
    if entry.error is not None:
        return entry
    try:
        _check_family(folder)
    except (CheckpointError, DataError) as error:
        return replace(entry, error=error.sentence)
    if not _is_whole(folder):
        return replace(entry, error=say("its weights are not here; `glassformer pull {name}` fetches them.", name=name))
    return entry


class HubFormat(Format):
    """Names of the hub, for `transformer.load`; the folders in the cache are other formats'."""

    def reads(self, source: Path, *, inside: Path | None) -> bool:
        """Whether it is a name of the hub: nothing lies at such a path."""
        return inside is None and is_name(source.as_posix()) and not source.parent.exists() and not source.exists()

    def load(self, source: Path, how: LoadOptions) -> Checkpoint:
        """From the cache: a name means the same until it is pulled again; else it is downloaded."""
        folder = pull(source.as_posix(), again=False)
        return opening.load(folder, **vars(replace(how, inside=_root().resolve())))


FORMAT = HubFormat()


def _root() -> Path:
    """The cache, which need not exist."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE).expanduser()


def _repository(name: str) -> Path:
    return _root() / "--".join(("models", *name.split("/")))


def _called(name: str, refs: Collection[str], commit: str) -> str:
    """The name by which a revision opens."""
    return name if MAIN in refs else f"{name}@{next(iter(sorted(refs)), commit)}"


def _is_whole(folder: Path) -> bool:
    """Whether the settings and the weights are there; of shards, all that the index names."""
    try:
        there = {one.name for one in folder.iterdir() if one.exists()}
        for name in PARTS if not there & {WHOLE, PICKLED} else ():
            if name in there:
                return CONFIG in there and {*read_index(FolderFiles(folder), name).values()} <= there
    except (OSError, CheckpointError, DataError):
        return False
    return CONFIG in there and bool(there & {WHOLE, PICKLED})


def _family(folder: Path) -> str:
    try:
        found = FolderFiles(folder).json(CONFIG, limit=MAX_CONFIG).get("model_type", "glassformer")
    except (CheckpointError, DataError, AttributeError):
        return ""
    return found if isinstance(found, str) else ""


def _check_family(folder: Path) -> None:
    """Refuse what would not open, before its weights are fetched."""
    files = FolderFiles(folder)
    content = files.read(CONFIG, limit=MAX_CONFIG)
    if b'"model_type"' in content or b'"d_model"' not in content:
        family_of(files)
    else:  # one of this program's own
        read_config(content, label=files.label(CONFIG))


def _counted(before: int, whole: int, progress: Progress) -> dict[str, Any]:
    """What makes `hf_hub_download` tell of its bytes; its own bar where nobody asked."""
    if progress is silent:
        return {}
    from tqdm.auto import tqdm

    class Bar(tqdm):
        """Tells of bytes instead of drawing them."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs | {"disable": True})
            self.counted = float(kwargs.get("initial") or 0)

        def update(self, n: float | None = 1) -> bool | None:
            """So many more."""
            self.counted += n or 0
            progress(before + round(self.counted), whole)
            return None

    return {"tqdm_class": Bar}


@contextmanager
def _sentences(name: str, revision: str) -> Iterator[None]:
    """What goes wrong at the hub, as one sentence."""
    from huggingface_hub import constants, errors

    try:
        yield
    except CheckpointError:
        raise
    except errors.GatedRepoError as error:
        raise CheckpointError(
            "{name}: its authors give it only to those who agreed to their terms; do so at {page}, log in with "
            "`hf auth login`, and try again.",
            name=name,
            page=f"{constants.ENDPOINT}/{name}",
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise CheckpointError(
            "{name}: {hub} has no model of this name, or it is private; check the name, or log in with "
            "`hf auth login`.",
            name=name,
            hub=constants.ENDPOINT,
        ) from error
    except errors.RevisionNotFoundError as error:
        raise CheckpointError(
            "{name}: has no revision {revision}; its page lists them.", name=name, revision=shown(revision)
        ) from error
    except errors.RemoteEntryNotFoundError as error:
        raise CheckpointError(
            "{name}: has no {file}, so it is not a model that this program opens.", name=name, file=CONFIG
        ) from error
    except errors.HfHubHTTPError as error:
        status = getattr(error.response, "status_code", 0)
        raise CheckpointError(
            "{name}: {hub} answered with status {status}; try again later.",
            name=name,
            hub=constants.ENDPOINT,
            status=status,
        ) from error
    except Exception as error:
        if not _is_away(error):
            if not isinstance(error, OSError):
                raise
            raise CheckpointError(
                "{name}: cannot be written to the cache in {folder} ({reason}).",
                name=name,
                folder=str(_root()),
                reason=error.strerror or str(error),
            ) from error
        if constants.HF_HUB_OFFLINE:
            raise CheckpointError(
                "{name}: is not in the cache, and HF_HUB_OFFLINE forbids to fetch it; unset that, or pull it where "
                "there is a network and copy the cache.",
                name=name,
            ) from error
        raise CheckpointError(
            "{name}: is not in the cache, and {hub} cannot be reached; check the network, or HF_ENDPOINT.",
            name=name,
            hub=constants.ENDPOINT,
        ) from error


def _is_away(error: Exception) -> bool:
    """Whether the hub was not asked, or did not answer: of the HTTP library's errors, which has a name of its own."""
    from huggingface_hub import errors

    http = errors.HfHubHTTPError.__mro__[1]
    away = (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled, ConnectionError, http)
    return isinstance(error, away) and not isinstance(error, errors.HfHubHTTPError)
