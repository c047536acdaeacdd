"""What a file or folder is, before anything of it is understood: a look at its names and at its config.json."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from transformer.files.files import FolderFiles
from transformer.importers.weights import INDEX, PICKLED, WHOLE

Kind = Literal["native", "huggingface", "weights"]
CONFIG, ADAPTER = "config.json", "adapter_config.json"
MAX_JSON = 4_000_000  # label maps can be long
OF_A_FOLDER = (CONFIG, ADAPTER, WHOLE, INDEX, PICKLED)  # files that mean the folder around them
_OURS, _THEIRS = ("format_version", "n_encoder_layers"), ("model_type", "architectures", "transformers_version")


def kind_of(source: Path, *, inside: Path | None = None) -> tuple[Kind, Path]:
    """What something is: a checkpoint folder of this program, a folder of Hugging Face's transformers, or weights.

    Gives the kind, and what is to be opened: the folder, where a file of it was named that means nothing without the
    others. Refuses what is not there, and a damaged config.json. `inside` is the real path of a folder that it may
    not leave by a link.
    """
    if not source.is_file():
        return _of_folder(source, inside), source
    if source.name in OF_A_FOLDER:
        kind = _of_folder(source.parent, inside)
        if kind != "weights":
            return kind, source.parent
    return "weights", source


def _of_folder(folder: Path, inside: Path | None) -> Kind:
    files = FolderFiles(folder, inside=inside)
    if not files.has(CONFIG):
        return "huggingface" if files.has(ADAPTER) else "weights"
    record = files.json(CONFIG, limit=MAX_JSON)
    if not isinstance(record, Mapping):
        return "native"  # what it is, loading it says
    if any(key in record for key in _OURS):
        return "native"
    return "huggingface" if any(key in record for key in _THEIRS) else "weights"
