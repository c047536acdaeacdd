"""Files that are uploaded, by their names: those of a folder, those that another program saved, and packed ones."""

import io
import tempfile
import zipfile
from pathlib import Path


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def made(maker):
    """The files that it writes into a folder."""
    with tempfile.TemporaryDirectory() as folder:
        maker(Path(folder))
        return contents(Path(folder))


def zipped(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()
