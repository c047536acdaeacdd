"""What a visitor of the repository relies on: it is small, it is portable, and the README's tree is true."""

import re
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
# The README names each of these, or the folder that holds them without naming any of its files.
IN_TREE = ("app.py", "charts/", "pages/", "transformer/", "ui/")


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


def tree_paths(readme: str) -> list[str]:
    """Paths named by the README's tree, with `<name>` as `*`.

    A line is an indentation, one or more paths with single spaces between, two spaces or more, and a
    description; a folder ends in `/`, and deeper lines are inside it. A line that begins as far right as
    descriptions do goes on with the one before.
    """
    blocks = re.findall(r"^```[a-z]*\n(.*?)^```", readme, flags=re.MULTILINE | re.DOTALL)
    block = next((block for block in blocks if re.search(r"^\W*app\.py\b", block, flags=re.MULTILINE)), "")
    parents: list[tuple[int, str]] = []
    paths: list[str] = []
    for line in re.sub(r"[│├└─]", " ", block).splitlines():
        indent = len(line) - len(line.lstrip())
        if not line.strip() or indent >= 16:
            continue
        parents = [(depth, folder) for depth, folder in parents if depth < indent]
        names = re.split(r"\s{2,}", line.strip())[0].split(" ")
        inside = parents[-1][1] if parents else ""
        paths += [inside + re.sub(r"<\w+>", "*", name) for name in names]
        if names[0].endswith("/"):
            parents.append((indent, paths[-1]))
    return paths


def wrong_tree(root: Path, readme: str) -> list[str]:
    """Paths of the tree that do not exist, and source files that the tree forgot."""
    paths = tree_paths(readme)
    missing = [f"the README names {path}, which does not exist" for path in paths if not any(root.glob(path))]
    named = {str(match.relative_to(root)) for path in paths for match in root.glob(path)}
    opened = {str(Path(name).parent) for name in named}
    forgotten = [
        f"the README's tree lacks {path}"
        for path in map(str, repository_files(root))
        if path.startswith(IN_TREE) and path.endswith(".py") and not path.endswith("__init__.py")
        if path not in named and not _inside_closed_folder(path, named=named, opened=opened)
    ]
    return missing + forgotten


def _inside_closed_folder(path: str, *, named: set[str], opened: set[str]) -> bool:
    """Tell whether a folder above the path is named as a whole, none of its files being listed."""
    return any(str(folder) in named - opened for folder in Path(path).parents)


def test_files_are_small():
    assert repository_files(ROOT)
    assert too_large(ROOT) == []


def test_no_path_or_host_of_one_machine():
    found = unportable(ROOT)
    assert not found, "\n".join(found)


def test_readme_names_the_commands():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for command in ("make run", "make test"):
        assert command in readme


def test_readme_tree_is_true():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(tree_paths(readme)) >= 10, "the README has no tree that starts with app.py"
    found = wrong_tree(ROOT, readme)
    assert not found, "\n".join(found)


README = """# A

```sh
make run
```

```
app.py               the app
pages/               one script per view
  explore/           step, attention
                     and more
charts/              figures
  heatmap.py grid.py
checkpoints/<name>/  config.json  weights
```
"""


@pytest.fixture
def tree(tmp_path):
    for name in (
        "app.py",
        "pages/explore/step.py",
        "charts/heatmap.py",
        "charts/grid.py",
        "checkpoints/a/config.json",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n", encoding="utf-8")
    return tmp_path


def test_tree_is_read_as_written(tree):
    expected = ["app.py", "pages/", "pages/explore/", "charts/", "charts/heatmap.py", "charts/grid.py"]
    assert tree_paths(README) == [*expected, "checkpoints/*/"]
    assert wrong_tree(tree, README) == []


def test_a_missing_and_a_forgotten_file_are_caught(tree):
    (tree / "charts/grid.py").rename(tree / "charts/flow.py")
    assert wrong_tree(tree, README) == [
        "the README names charts/grid.py, which does not exist",
        "the README's tree lacks charts/flow.py",
    ]


def test_a_large_file_is_caught(tree):
    (tree / "data.bin").write_bytes(b"0" * (MEGABYTE + 1))
    (tree / "checkpoints/a/model.safetensors").write_bytes(b"\0" * (MEGABYTE + 1))
    assert too_large(tree) == ["data.bin has 1,000,001 bytes"]


def test_large_checkpoints_are_caught(tree):
    with (tree / "checkpoints/a/model.safetensors").open("wb") as file:
        file.truncate(CHECKPOINTS_BYTES + 1)
    assert len(too_large(tree)) == 1


@pytest.mark.parametrize("word", FORBIDDEN)
def test_a_place_of_one_machine_is_caught(tree, word):
    (tree / "notes.md").write_text(f"one\nsee {word}x\n", encoding="utf-8")
    assert unportable(tree) == [f"notes.md:2 names {word}"]
