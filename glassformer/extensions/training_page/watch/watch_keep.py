"""What a visitor takes home of a training: its checkpoint and snapshots, and the commands that make the same.

Knows nothing of Streamlit.
"""

import io
import zipfile
from pathlib import Path

from glassformer.extensions.training_page.trainings import Training
from glassformer.extensions.training_page.watch.watch_choices import shown
from transformer.checkpoint.snapshots import folder_of
from transformer.i18n import Sentence, say

COMMANDS = "commands.txt"


def about(training: Training) -> Sentence:
    """What stands above the commands."""
    return say(
        "These commands made the checkpoint “{name}”. Unpack the folders into a folder of checkpoints, and the app "
        "lists it.",
        name=training.plan.name,
    )


def packed(training: Training, told: str) -> bytes:
    """The folders of the checkpoint and of its snapshots, what was trained on, and the commands, as a zip archive.

    `told` is what stands above the commands, in the reader's language.
    """
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for folder in (training.out, folder_of(training.out)):
            for file in sorted(folder.iterdir()) if folder.is_dir() else ():
                if not file.name.startswith(".") and not file.name.endswith(".partial"):
                    _add(archive, file, f"{folder.name}/{file.name}")
        for name, content in training.plan.files.items():
            archive.writestr(name, content)
        archive.writestr(COMMANDS, "\n".join([f"# {told}", *shown(training.plan.commands), ""]))
    return out.getvalue()


def _add(archive: zipfile.ZipFile, file: Path, name: str) -> None:
    """A file as it is; what is compressed already is not compressed again."""
    how = zipfile.ZIP_STORED if file.suffix == ".xz" else zipfile.ZIP_DEFLATED
    archive.write(file, name, compress_type=how)
