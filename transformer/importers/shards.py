"""A folder whose weights are cut into several safetensors files, and the index that says which tensor is in which.

Source: the files that Hugging Face's `save_pretrained` writes above a size: `model.safetensors.index.json` with
`weight_map`, tensor -> file.
"""

from collections.abc import Mapping

from transformer.errors import CheckpointError, ClauseError, shown
from transformer.files import strictjson
from transformer.files.files import FolderFiles

INDEX = "model.safetensors.index.json"
MAX_INDEX = 16_000_000
MAX_FILES = 256


def read_index(files: FolderFiles) -> dict[str, str]:
    """Which file each tensor is in, by the index of a folder; refuses files that are not plainly of the folder."""
    label = files.label(INDEX)
    try:
        record = strictjson.parse(files.read(INDEX, limit=MAX_INDEX))
    except ClauseError as error:
        raise CheckpointError("{label}: {problem}.", label=label, problem=error.sentence) from None
    weight_map = record.get("weight_map") if isinstance(record, dict) else None
    if not isinstance(weight_map, dict) or not weight_map:
        raise CheckpointError("{label}: expected weight_map, which says where each tensor is.", label=label)
    for tensor, name in weight_map.items():
        if not _is_plain(name):
            raise CheckpointError(
                "{label}: says that tensor {tensor} is in {name}; expected the name of a .safetensors file in the "
                "same folder.",
                label=label,
                tensor=shown(tensor),
                name=shown(name),
            )
    n_files = len(set(weight_map.values()))
    if n_files > MAX_FILES:
        raise CheckpointError(
            "{label}: names {n:,} files; at most {most} are opened.", label=label, n=n_files, most=MAX_FILES
        )
    return weight_map


def check_index(files: FolderFiles, weight_map: Mapping[str, str], found: Mapping[str, str]) -> None:
    """Refuse an index that differs from what the files hold; both say of each tensor which file it is in."""
    for tensor in weight_map:
        if found.get(tensor) != weight_map[tensor]:
            raise CheckpointError(
                "{label}: tensor {tensor} is missing; {index} says that it is here.",
                label=files.label(weight_map[tensor]),
                tensor=shown(tensor),
                index=INDEX,
            )
    for tensor, name in found.items():
        if tensor not in weight_map:
            raise CheckpointError(
                "{label}: has tensor {tensor}, which {index} does not name.",
                label=files.label(name),
                tensor=shown(tensor),
                index=INDEX,
            )


def _is_plain(name: object) -> bool:
    """Whether something is the name of a file, without any part of a path."""
    if not isinstance(name, str) or not name.endswith(".safetensors") or len(name.encode()) > 255:
        return False
    return name.isprintable() and not name.startswith(".") and not set(name) & set("/\\:")
