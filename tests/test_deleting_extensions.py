"""An extension goes when its folder is deleted: all that is left is imported, its pages open, its tests pass."""

import os
import subprocess
import sys
from glob import glob

import pytest

from tests.afresh import run_apart
from tests.deleted import EXTENSIONS, without
from tests.source_code import ROOT

# Every module of the kernel and of the extensions that are left, then every page.
OPEN = """
import sys
from importlib import import_module
from pathlib import Path
from streamlit.testing.v1 import AppTest
sys.path.insert(0, "")
from transformer.extensions import extensions, provided
import transformer

gone = sys.argv[1:]
assert not {*gone} & {one.name for one in extensions()}
assert "Checkpoint" in dir(transformer)
assert "doctor" not in gone or "examine" not in dir(transformer)
assert Path(transformer.__file__).is_relative_to(Path().resolve())
left = [f"glassformer/extensions/{one.name}/" for one in extensions()]
for file in sorted([*Path("transformer").rglob("*.py"), *Path("glassformer").rglob("*.py")]):
    name = file.as_posix()
    within = name.startswith("glassformer/extensions/") and name.count("/") > 2
    if (not within or name.startswith(tuple(left))) and "/pages/" not in name:
        if not file.stem.endswith(("__main__", "_child", "worker", "probe")):
            import_module(".".join(file.with_suffix("").parts).removesuffix(".__init__"))
scripts = [*Path("pages").rglob("*.py"), *(entry.script for entries in provided("pages") for entry in entries)]
assert len(scripts) >= 9
for script in sorted([*scripts, "main.py"], key=str):
    test = AppTest.from_file(str(script), default_timeout=300)
    test.query_params.update({"model": "reverse", "src": "glass"})
    test.run()
    assert not test.exception, (script, test.exception)
print("opened without", *gone)
"""


# Daily each extension is missing once; in the deep tests all, and each alone.
GONE = {"half": EXTENSIONS[::2], "other half": EXTENSIONS[1::2]}
GONE_DEEP = {"all": EXTENSIONS} | {one: (one,) for one in EXTENSIONS}


@pytest.mark.parametrize(
    "names",
    [*GONE.values(), *(pytest.param(names, marks=pytest.mark.deep) for names in GONE_DEEP.values())],
    ids=[*GONE, *GONE_DEEP],
)
def test_without_some_extensions_all_that_is_left_is_imported_and_opens(tmp_path, names):
    """What of one extension another one imports is for tests/test_layering.py to see."""
    done = run_apart(OPEN, *names, folder=without(names, tmp_path / "left"))
    assert (done.returncode, "opened without" in done.stdout) == (0, True), done.stderr[-4_000:]


# What of the kernel's tests may meet an extension; the rest passes without all of them, so without one as well.
NEAR = (
    "tests/glassformer",
    "tests/pages",
    "tests/transformer/checkpoint",
    *glob("tests/transformer/test_*.py", root_dir=ROOT),
)
WHOLE = ("tests/transformer", "tests/glassformer", "tests/pages")
# Transcripts are of pages with all that extensions add to them.
TESTS = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--ignore=tests/pages/test_transcripts.py")


@pytest.mark.deep
@pytest.mark.parametrize(
    ("names", "tests"), [(EXTENSIONS, WHOLE), *(((one,), NEAR) for one in EXTENSIONS)], ids=["all", *EXTENSIONS]
)
def test_without_an_extension_the_tests_of_the_kernel_pass(tmp_path, names, tests):
    copy = without(names, tmp_path, tests=True)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(copy)}
    done = subprocess.run([sys.executable, *TESTS, *tests], cwd=copy, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout[-2_000:], done.stderr[-4_000:])
