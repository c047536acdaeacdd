"""Folder of weights: choice of file, shards by index, nested folders (MLflow, Lightning), YAML or JSON settings.

A folder without weights of its own may hold them in a folder that programs make for that, as MLflow's `data/model.pth`
or Lightning's `checkpoints/last.ckpt`, whose `hparams.yaml` is one level up. Weights in several files are listed by an
index, tensor -> file, or known by names such as `pytorch_model-00001-of-00002.bin`.

Source: the files that `save_pretrained` of Hugging Face's transformers, Lightning's loggers and MLflow's `log_model`
write; YAML 1.2, PyYAML's safe subset.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from transformer.errors import CheckpointError, ClauseError, shown, within
from transformer.files import kinds
from transformer.files.untrusted_folder import FolderFiles
from transformer.i18n import Sentence, joined, say

WHOLE, PICKLED, TENSORS = "model.safetensors", "pytorch_model.bin", ".safetensors"
INDEX, INDEX_OF_PICKLED = f"{WHOLE}.index.json", f"{PICKLED}.index.json"
USUAL = (WHOLE, INDEX, PICKLED, INDEX_OF_PICKLED)  # the first that is there counts
ARRAYS = ".npz"
MAX_INDEX = 16_000_000
MAX_FILES = 256
HOLDERS = ("data", "checkpoints", "checkpoint", "weights", "models", "model", "ckpt", "extra_files")
PART = re.compile(r"(.*)-(\d{5})-of-(\d{5})((?:\.\w+)+)")
_SETTINGS = re.compile(
    r"(hparams|hyper_?param(eter)?s|((model|train(ing)?|run|experiment)[_-])?(config|args|params|settings))\.(json|ya?ml)"
)
_MAX_SETTINGS = 4_000_000
_MOST_LOOKED_AT = 1_000


def chosen(files: FolderFiles, folder: Path) -> str:
    """The file of weights in a folder, or in a folder of it that is made for weights."""
    for name in USUAL:
        if files.has(name):
            return name
    there = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    found = _weights_among(there)
    deeper = [] if found else nested(folder)
    if not found and not deeper:
        raise _without_weights(files, there)
    names = [path.relative_to(folder).as_posix() for path in found or deeper]
    parts = {(m[1], m[3], m[4]) for name in names if (m := PART.fullmatch(name))}
    if len(names) == 1 or (len(parts) == 1 and all(map(PART.fullmatch, names))):
        return names[0]
    listed = joined(", ", [shown(name) for name in names[:5]])
    raise CheckpointError(
        "{folder}: has several weights files ({names}); name the one to open.", folder=files.name, names=listed
    )


def nested(folder: Path) -> list[Path]:
    """The weights in folders of a folder that are made for them; of a whole model and its state, the state alone."""
    inside = [folder / name for name in HOLDERS]
    inside += [one / name for one in inside for name in HOLDERS]
    found = list[Path]()
    for one in inside:
        with suppress(OSError):
            if one.is_dir() and not one.is_symlink():
                found += _weights_among(sorted(one.iterdir())[:_MOST_LOOKED_AT])
    return [path for path in found if "state_dict" in path.name] or found


def _weights_among(there: Sequence[Path]) -> list[Path]:
    seen = [path for path in there if not path.name.startswith(".")]
    named = [path for path in seen if path.suffix in (TENSORS, *kinds.PICKLED, ARRAYS) and not path.is_dir()]
    return named or [path for path in seen if kinds.looked_at(path)[0]]


def _without_weights(files: FolderFiles, there: Sequence[Path]) -> CheckpointError:
    """The error for a folder without weights: a file that does not open, or subfolders with weights."""
    for path in there:
        if (problem := kinds.looked_at(path)[1]) is not None:
            return CheckpointError("{label}: {problem}", label=files.label(path.name), problem=problem)
    one: Path | None = None
    with suppress(OSError):
        inside = (path for path in there if path.is_dir() and not path.is_symlink())
        one = next((one for path in inside for one in sorted(path.iterdir()) if kinds.looked_at(one)[0]), None)
    if one is not None:
        return CheckpointError(
            "{folder}: has no weights file itself, but {file} is one; open that.",
            folder=files.name,
            file=files.label(f"{one.parent.name}/{one.name}"),
        )
    return CheckpointError(
        "{folder}: has no weights file, nor have its folders {holders}; expected model.safetensors or another file of "
        "safetensors, torch.save or numpy.savez.",
        folder=files.name,
        holders=", ".join(HOLDERS),
    )


def parts_of(files: FolderFiles, name: str) -> tuple[str, Mapping[str, str], list[str]] | None:
    """The index, what it says, and the files of weights of which `name` is the index or a part; None if it is whole.

    Without an index, which then has no name, the parts are known by their names alone.
    """
    part = PART.fullmatch(name)
    index = f"{part[1]}{part[4].removesuffix(TENSORS) or TENSORS}.index.json" if part else name
    if index.endswith(".index.json") and files.has(index):
        said = read_index(files, index)
        return index, said, list(dict.fromkeys(said.values()))
    if part is None:
        return None
    n = int(part[3])
    if not 0 < n <= MAX_FILES:
        raise CheckpointError(
            "{label}: is one of {n:,} files; the limit is {most:,}.", label=files.label(name), n=n, most=MAX_FILES
        )
    return "", {}, [f"{part[1]}-{i:05}-of-{part[3]}{part[4]}" for i in range(1, n + 1)]


def read_index(files: FolderFiles, index: str = INDEX) -> dict[str, str]:
    """Which file each tensor is in, by the index of a folder; refuses files that are not plainly of the folder."""
    label = files.label(index)
    record = files.json(index, limit=MAX_INDEX)
    with within(label):
        weight_map = record.get("weight_map") if isinstance(record, dict) else None
        if not isinstance(weight_map, dict) or not weight_map:
            raise ClauseError("expected weight_map, a table that gives the file of each tensor")
        endings = kinds.PICKLED if index == INDEX_OF_PICKLED else (TENSORS,)
        for tensor, name in weight_map.items():
            if not _is_plain(name, endings):
                raise ClauseError(
                    "gives {name} as the file of tensor {tensor}; expected the name of a {ending} file in the same "
                    "folder",
                    tensor=shown(tensor),
                    name=shown(name),
                    ending=" / ".join(endings),
                )
        n_files = len(set(weight_map.values()))
        if n_files > MAX_FILES:
            raise ClauseError("lists {n:,} files; the limit is {most}", n=n_files, most=MAX_FILES)
        return weight_map


def check_index(files: FolderFiles, index: str, weight_map: Mapping[str, str], found: Mapping[str, str]) -> None:
    """Refuse an index that differs from what the files hold; both say of each tensor which file it is in."""
    for tensor in weight_map:
        if found.get(tensor) != weight_map[tensor]:
            raise CheckpointError(
                "{label}: tensor {tensor} is missing, although {index} lists it for this file.",
                label=files.label(weight_map[tensor]),
                tensor=shown(tensor),
                index=index,
            )
    for tensor, name in found.items():
        if tensor not in weight_map:
            raise CheckpointError(
                "{label}: has tensor {tensor}, which {index} does not list.",
                label=files.label(name),
                tensor=shown(tensor),
                index=index,
            )


def _is_plain(name: object, endings: tuple[str, ...]) -> bool:
    """Whether something is a plain file name, without a path."""
    if not isinstance(name, str) or not name.endswith(endings) or len(name.encode()) > 255:
        return False
    return name.isprintable() and not name.startswith(".") and not set(name) & set("/\\:")


def places_beside(path: Path) -> list[Path]:
    """The folder of a file of weights, and the one around it if that one is made for weights."""
    return [path.parent, *([path.parent.parent] if path.parent.name in HOLDERS else [])]


def settings_beside(path: Path, inside: Path | None) -> tuple[dict[str, Any], list[Sentence]]:
    """What files next to a file of weights say, by their names, if it is the only one there; notes on damaged ones."""
    found, notes = dict[str, Any](), list[Sentence]()
    with suppress(OSError):
        alone = [one for one in _weights_among(sorted(path.parent.iterdir())) if not PART.fullmatch(one.name)]
        for file in settings_files(path, inside) if alone in ([], [path]) else ():
            try:
                found.setdefault(file.name, _read(FolderFiles(file.parent, inside=inside), file.name))
            except (CheckpointError, ClauseError) as error:
                said = say(
                    "{file}, next to the weights, is not used: {problem}", file=file.name, problem=error.sentence
                )
                notes.append(said)
    return {name: said for name, said in found.items() if isinstance(said, dict)}, notes


def settings_files(path: Path, inside: Path | None) -> Iterator[Path]:
    """The files of settings next to one of weights, by their names."""
    for place in places_beside(path):
        if inside is None or place.resolve().is_relative_to(inside):
            there = sorted(place.iterdir())[:_MOST_LOOKED_AT]
            yield from (one for one in there if _SETTINGS.fullmatch(one.name))


def _read(files: FolderFiles, name: str) -> Any:
    if name.endswith(".json"):
        return files.json(name, limit=_MAX_SETTINGS)
    if find_spec("yaml") is None:
        raise ClauseError("it needs PyYAML; install it with `pip install pyyaml`.")
    return parsed_yaml(files.read(name, limit=_MAX_SETTINGS))


def parsed_yaml(content: bytes | str, *, words: bool = False) -> Any:
    """The content of YAML, whose aliases are refused: a few can be of any size; with `words` each value is its text."""
    import yaml  # type: ignore[import-untyped]  # other models open without it

    try:
        may_have_one = "*" in content if isinstance(content, str) else b"*" in content
        if may_have_one and any(isinstance(one, yaml.AliasToken) for one in yaml.scan(content)):
            alias = say("it has an alias (*name), which is refused; write the value itself there")
            raise ClauseError("cannot be used: {problem}", problem=alias)
        return yaml.load(content, yaml.BaseLoader if words else yaml.SafeLoader)
    except ClauseError:
        raise
    except (yaml.YAMLError, ValueError, TypeError, RecursionError, UnicodeError, OverflowError, KeyError) as error:
        problem = shown(str(error).split("\n", 1)[0] or type(error).__name__)
        raise ClauseError("cannot be read as YAML: {problem}", problem=problem) from None
