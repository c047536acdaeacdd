"""What is installed has two packages and what the app starts with, and the library needs nothing of the app."""

import re
import tomllib
from fnmatch import fnmatch

import pytest

from glassformer import APP, SHIPPED
from tests.afresh import run_afresh
from tests.source_code import ROOT
from transformer import __version__

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
WHEEL = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
SDIST = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
EXTRAS = PROJECT["project"]["optional-dependencies"]
BLOCKED = (
    "cachetools", "kaleido", "opencc", "pandas", "plotly", "pyarrow", "segno", "starlette", "streamlit", "uvicorn",
    "yaml",
)  # fmt: skip


def names(requirements):
    return {re.match(r"[\w-]+", one)[0].lower().replace("_", "-") for one in requirements}


def listed(file):
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    return names(line for line in lines if line and line[0] not in "#-")


def test_only_our_two_packages_are_at_the_top_level_and_what_streamlit_starts_lies_in_one_of_them():
    assert WHEEL["packages"] == ["transformer", "glassformer"]
    for file, place in WHEEL["force-include"].items():
        assert (ROOT / file).exists()
        assert place == f"glassformer/installed/{file}"
        assert any(f"/{file}".startswith(one) for one in SDIST)  # of which a wheel can be built
    assert {"app.py", "main.py", "pages", "checkpoints", ".streamlit/config.toml"} <= set(WHEEL["force-include"])
    assert (APP, SHIPPED) == (ROOT, ROOT / "checkpoints")  # nothing is installed here


def test_a_wheel_has_these_and_no_more():
    """What hatchling would pack, where it is installed; packing all checkpoints takes seconds."""
    builder = pytest.importorskip("hatchling.builders.wheel").WheelBuilder(str(ROOT))
    inside = {file.distribution_path for file in builder.recurse_included_files()}
    assert {name.split("/")[0] for name in inside} == {"transformer", "glassformer"}
    assert builder.metadata.version == __version__
    assert {"transformer/py.typed", "glassformer/py.typed"} <= inside
    assert "glassformer/installed/checkpoints/zh-en/config.json" in inside
    assert not [name for name in inside if fnmatch(name, "*.pyc") or "node_modules" in name]


def test_the_lists_name_the_same_libraries_and_the_same_version():
    app, dev = names(PROJECT["project"]["dependencies"]), listed("requirements-dev.txt")
    assert app | {"uvloop"} == listed("requirements.txt")
    extras = names(one for requirements in EXTRAS.values() for one in requirements) - {"glassformer", "uvloop"}
    assert extras == dev
    locked = listed("constraints.txt")
    assert (app | dev) - {"torch"} <= locked
    assert not [name for name in locked if name.startswith(("torch", "nvidia", "cuda", "triton"))]
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"version: {__version__}" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


LIBRARY = f"""
import sys
sys.modules.update(dict.fromkeys({BLOCKED!r}))  # importing any of these fails
import transformer
for name in dir(transformer):
    getattr(transformer, name)
print(transformer.load("reverse").run("abc").output_text)
print(transformer.load("en-fr").run("The cat sleeps.").output_text)
"""


def test_the_library_needs_nothing_of_the_app_nor_what_single_models_need(tmp_path):
    ran = run_afresh(LIBRARY, folder=tmp_path)
    assert (ran.stderr, ran.returncode) == ("", 0)
    assert ran.stdout == "cba\nLe chat dort.\n"
