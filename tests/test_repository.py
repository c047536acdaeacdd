"""The repository is small and names no place of one machine, and each folder says what it is for."""

import ast
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MEGABYTE = 1_000_000
CHECKPOINTS_BYTES = 60 * MEGABYTE

# Written in two halves, so that this file does not contain what it forbids.
FORBIDDEN = [
    "/wo" + "rk/",
    "../sha" + "red",
    "/root/" + "venv",
    "/opt/" + "pypi",
    "/opt/" + "wheels",
    "pypi" + ".org",
    "python" + "hosted.org",
    "download." + "pytorch.org",
    "registry." + "npmjs.org",
    "deb." + "debian.org",
]
SAY_WHAT_THEY_ARE_FOR = ("glassformer", "transformer")


def repository_files(root: Path) -> list[Path]:
    """Files that are, or would be, committed; in an unpacked archive, all that are not hidden."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        names = [name for name in listed.stdout.split("\0") if name]
    else:
        names = [str(path.relative_to(root)) for path in root.rglob("*")]
        names = [name for name in names if not name.startswith(".") and "__pycache__" not in name]
    return [Path(name) for name in sorted(set(names)) if (root / name).is_file()]


def too_large(root: Path) -> list[str]:
    sizes = {path: (root / path).stat().st_size for path in repository_files(root)}
    in_checkpoints = sum(size for path, size in sizes.items() if path.parts[0] == "checkpoints")
    found = [
        f"{path} has {size:,} bytes"
        for path, size in sizes.items()
        if path.parts[0] != "checkpoints" and size > MEGABYTE
    ]
    return found + ([f"checkpoints/ has {in_checkpoints:,} bytes"] if in_checkpoints > CHECKPOINTS_BYTES else [])


def unportable(root: Path) -> list[str]:
    """Lines of text files that name a place only this machine, or only one network, has."""
    found = []
    for path in repository_files(root):
        data = (root / path).read_bytes()
        if b"\0" in data:
            continue
        for number, line in enumerate(data.decode("utf-8", errors="replace").splitlines(), start=1):
            found += [f"{path}:{number} names {word}" for word in FORBIDDEN if word in line]
    return found


def silent_folders(root: Path) -> list[str]:
    """Folders with Python whose `__init__.py` does not say what they are for."""
    folders = {
        path.parent
        for path in repository_files(root)
        if path.suffix == ".py" and path.parts[0] in SAY_WHAT_THEY_ARE_FOR
    }
    return sorted(str(folder) for folder in folders if not _first_line(root / folder / "__init__.py"))


def _first_line(file: Path) -> str | None:
    return ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) if file.exists() else None


def test_files_are_small_portable_and_in_folders_that_say_what_they_are_for():
    assert repository_files(ROOT)
    assert too_large(ROOT) == []
    assert silent_folders(ROOT) == []
    found = unportable(ROOT)
    assert not found, "\n".join(found)


@pytest.fixture
def tree(tmp_path):
    for name in ("app.py", "glassformer/charts/heatmap.py", "checkpoints/a/config.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n", encoding="utf-8")
    return tmp_path


def test_what_is_not_so_is_caught(tree):
    assert silent_folders(tree) == ["glassformer/charts"]
    (tree / "glassformer/charts/__init__.py").write_text('"""Charts."""\n', encoding="utf-8")
    assert silent_folders(tree) == []
    (tree / "data.bin").write_bytes(b"0" * (MEGABYTE + 1))
    with (tree / "checkpoints/a/model.safetensors").open("wb") as file:
        file.truncate(CHECKPOINTS_BYTES + 1)
    assert [line.split()[0] for line in too_large(tree)] == ["data.bin", "checkpoints/"]
    (tree / "notes.md").write_text(f"one\nsee {FORBIDDEN[0]}x\n", encoding="utf-8")
    assert unportable(tree) == [f"notes.md:2 names {FORBIDDEN[0]}"]
