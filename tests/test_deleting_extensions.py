"""An extension goes when its folder is deleted: all that is left is imported, its pages open, its tests pass."""

import os
import subprocess
import sys
from glob import glob

import pytest

from tests.deleted import EXTENSIONS, without
from tests.source_code import ROOT

# Every module of the kernel and of the extensions that are left, then every page on these models; each copy of the
# product in a process of its own, which need not import torch, Streamlit and Plotly once more.
OPEN = """
import os
import sys
from importlib import import_module
from pathlib import Path
import pandas, plotly.graph_objects, torch
from streamlit.testing.v1 import AppTest

def opened(folder, asked, gone):
    os.chdir(folder)
    sys.path.insert(0, folder)
    from transformer.extensions import extensions, provided

    import transformer

    assert not {*gone} & {one.name for one in extensions()}
    assert "Checkpoint" in dir(transformer)
    assert "doctor" not in gone or "examine" not in dir(transformer)
    left = [f"glassformer/extensions/{one.name}/" for one in extensions()]
    for file in sorted([*Path("transformer").rglob("*.py"), *Path("glassformer").rglob("*.py")]):
        name = file.as_posix()
        within = name.startswith("glassformer/extensions/") and name.count("/") > 2
        if (not within or name.startswith(tuple(left))) and "/pages/" not in name:
            if not file.stem.endswith(("__main__", "_child", "worker", "probe")):
                import_module(".".join(file.with_suffix("").parts).removesuffix(".__init__"))
    scripts = [*Path("pages").rglob("*.py"), *(entry.script for entries in provided("pages") for entry in entries)]
    assert len(scripts) >= 9
    for script in sorted(scripts):
        for parameters in asked:
            test = AppTest.from_file(str(script), default_timeout=300)
            test.query_params.update(parameters)
            test.run()
            assert not test.exception, (script, test.exception)
    test = AppTest.from_file("main.py", default_timeout=300).run()
    assert not test.exception, test.exception
    print("opened without", *gone, flush=True)

for one in eval(sys.argv[1]):
    if os.fork() == 0:
        opened(*one)
        os._exit(0)
    assert os.wait()[1] == 0
"""
LETTERS, CHINESE = {"model": "reverse", "src": "glass"}, {"model": "zh-en", "lang": "zh"}


def run(folder, *command, **more):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"} | more
    found = subprocess.run([sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True)
    assert found.returncode == 0, (found.stdout[-2_000:], found.stderr[-4_000:])
    return found.stdout


def check(folder, asked):
    """Open what is left without each of some groups of extensions, on some models."""
    copies = [(str(without(gone, folder / str(n))), asked[gone], gone) for n, gone in enumerate(asked)]
    assert run(folder, "-c", OPEN, repr(copies)).count("opened without") == len(asked)


def test_the_kernel_alone_and_each_half_of_the_extensions_without_the_other_open(tmp_path):
    """What of one extension another one imports is for tests/test_layering.py to see."""
    halves = {EXTENSIONS[::2]: [LETTERS], EXTENSIONS[1::2]: [LETTERS]}
    check(tmp_path, {EXTENSIONS: [LETTERS, CHINESE]} | halves)


@pytest.mark.deep
@pytest.mark.parametrize("name", EXTENSIONS)
def test_without_one_extension_all_that_is_left_opens(tmp_path, name):
    check(tmp_path, {(name,): [LETTERS]})


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
    run(copy, *TESTS, *tests, PYTHONPATH=str(copy))
