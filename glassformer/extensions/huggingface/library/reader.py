"""Folders of Hugging Face's transformers among what importers read."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from glassformer.extensions.huggingface.library.folder import ADAPTER, FAMILIES, SPECIAL_IDS, import_folder
from glassformer.extensions.importers.library.handed_pieces import Given
from glassformer.extensions.importers.library.imported import Imported
from glassformer.extensions.importers.library.kept_answers import check_names
from glassformer.extensions.importers.library.readers import Reader
from transformer.errors import CheckpointError
from transformer.files.files import as_typed
from transformer.i18n import Sentence, say

ASKED: Final = ("source_language", "target_language", *SPECIAL_IDS)  # what such a folder may leave open
SAVED: Final = """\
model.save_pretrained("DIR/my-gpt2")
tokenizer.save_pretrained("DIR/my-gpt2")"""


class HuggingFaceReader(Reader):
    """Folders with a config.json of transformers."""

    keys = frozenset(("model_type", "architectures", "transformers_version"))
    files = (ADAPTER,)

    def import_folder(self, folder: Path, *, answers: Mapping[str, Any], also: Given, inside: Path | None) -> Imported:
        """With its own tokenizer, and none that was given."""
        check_names(answers, ASKED, label=as_typed(folder, inside))
        if also.has_tokenizer:
            raise CheckpointError(
                "{folder}: a transformers folder uses its own tokenizer. Remove the tokenizer that you gave, or put "
                "that tokenizer's files into the folder.",
                folder=as_typed(folder, inside),
            )
        return import_folder(folder, answers=answers, inside=inside)

    def told(self) -> tuple[Sentence, str, Mapping[str, str]]:
        """How it is written, and each family with the `model_type`s by which it is known."""
        found: dict[str, list[str]] = {}
        for kind, family in FAMILIES.items():
            found.setdefault(family.name, []).append(kind)
        said = say(
            "**A Hugging Face `transformers` folder**, written by `save_pretrained` or downloaded from the "
            "hub, with `config.json`, the weights and the tokenizer. It opens directly. If the model family "
            "supports many languages, the app asks you which ones to use."
        )
        return said, SAVED, {name: ", ".join(kinds) for name, kinds in found.items()}


READER = HuggingFaceReader()
