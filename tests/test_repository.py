"""The repository is small and names no place of one machine, and each folder says what it is for."""

import ast
import subprocess
from pathlib import Path

from tests.source_code import ROOT

MEGABYTE = 1_000_000
CHECKPOINTS_BYTES = 60 * MEGABYTE  # so that a clone stays quick

# Written in two halves, so that this file does not contain what it forbids.
FORBIDDEN = [
    "/wo" + "rk/", "../sha" + "red", "/root/" + "venv", "/opt/" + "pypi", "/opt/" + "wheels", "pypi" + ".org",
    "python" + "hosted.org", "download." + "pytorch.org", "registry." + "npmjs.org", "deb." + "debian.org",
]  # fmt: skip


def repository_files(root):
    """Files that are, or would be, committed; in an unpacked archive, all that are not hidden."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    names = listed.stdout.split("\0")
    if listed.returncode:
        found = (str(path.relative_to(root)) for path in root.rglob("*"))
        names = [name for name in found if not name.startswith(".") and "__pycache__" not in name]
    return [Path(name) for name in sorted({*names}) if name and (root / name).is_file()]


def complaints(root):
    """Files that are too large, lines that name what one machine has, and folders that do not say what they are for."""
    files, in_checkpoints = repository_files(root), 0
    for path in files:
        data = (root / path).read_bytes()
        if path.parts[0] == "checkpoints":
            in_checkpoints += len(data)
        elif len(data) > MEGABYTE:
            yield f"{path} has {len(data):,} bytes"
        if b"\0" not in data:
            for number, line in enumerate(data.decode("utf-8", errors="replace").splitlines(), start=1):
                yield from (f"{path}:{number} names {word}" for word in FORBIDDEN if word in line)
    if in_checkpoints > CHECKPOINTS_BYTES:
        yield f"checkpoints/ has {in_checkpoints:,} bytes"
    for folder in {path.parent for path in files if path.suffix == ".py"}:
        head = root / folder / "__init__.py"
        said = head.exists() and ast.get_docstring(ast.parse(head.read_text(encoding="utf-8")))
        if not said and folder.parts[:1] in (("glassformer",), ("transformer",)):
            yield f"{folder} does not say what it is for"


def test_files_are_small_portable_and_in_folders_that_say_what_they_are_for():
    assert repository_files(ROOT)
    found = list(complaints(ROOT))
    assert not found, "\n".join(found)


def test_what_is_not_so_is_caught(tmp_path):
    for name in ("app.py", "glassformer/charts/heatmap.py", "checkpoints/a/config.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n", encoding="utf-8")
    assert [*complaints(tmp_path)] == ["glassformer/charts does not say what it is for"]
    (tmp_path / "glassformer/charts/__init__.py").write_text('"""Charts."""\n', encoding="utf-8")
    assert [*complaints(tmp_path)] == []
    (tmp_path / "data.bin").write_bytes(b"0" * (MEGABYTE + 1))
    with (tmp_path / "checkpoints/a/model.safetensors").open("wb") as file:
        file.truncate(CHECKPOINTS_BYTES + 1)
    (tmp_path / "notes.md").write_text(f"one\nsee {FORBIDDEN[0]}x\n", encoding="utf-8")
    assert [line.split(" has ")[0] for line in complaints(tmp_path)] == [
        "data.bin",
        f"notes.md:2 names {FORBIDDEN[0]}",
        "checkpoints/",
    ]
