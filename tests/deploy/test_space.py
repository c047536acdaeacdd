"""A Hugging Face Space has the settings that it needs, every file that it is built of, and a command that serves it."""

import re
import urllib.request

import yaml

from benchmarks.raw_client import RawClient
from tests.glassformer.server.test_cross_origin import opens
from tests.test_package import PROJECT
from tools.serve import ROOT, serve

FOLDER = ROOT / "deploy" / "huggingface-space"
LINES = (FOLDER / "Dockerfile").read_text(encoding="utf-8").splitlines()
SETTINGS = yaml.safe_load((FOLDER / "README.md").read_text(encoding="utf-8").split("---\n")[1])
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
COLOURS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}  # that a Space can have
UV = "uv==0.13.9"  # which finds the build of torch for CPUs
OPTIONS = re.compile(r"--(server|browser)\.")


def said(word):
    return [line.split(maxsplit=1)[1] for line in LINES if line.startswith(f"{word} ")]


def command():
    (words,) = map(yaml.safe_load, said("CMD"))
    return words


def test_its_settings_are_those_of_a_space_that_runs_a_container():
    assert (SETTINGS["sdk"], SETTINGS["license"]) == ("docker", PROJECT["project"]["license"].lower())
    assert {SETTINGS["colorFrom"], SETTINGS["colorTo"]} <= COLOURS
    assert len(SETTINGS["short_description"]) <= 60  # more is refused
    assert f"--server.port={SETTINGS['app_port']}" in command()
    assert said("EXPOSE") == [str(SETTINGS["app_port"])]
    users = re.findall(r"useradd .*--uid 1000 (\w+)", "\n".join(said("RUN")))
    assert users == said("USER")
    assert said("WORKDIR")[-1] == f"/home/{users[0]}"


def test_make_puts_together_what_it_copies_and_it_has_the_versions_that_are_tested():
    recipe = re.search(r"^space:.*\n((?:\t.*\n)+)", MAKEFILE, flags=re.MULTILINE)[1]
    for source in [one for line in said("COPY") for one in line.split()[:-1]]:
        built = source.endswith(".whl") and "-t wheel -d dist/space" in recipe
        assert built or (source in recipe and (ROOT / source).is_file()), source
    torch, app = [line for line in said("RUN") if " pip " in line]
    wanted = re.search(r"^TORCH [?]= (.*)$", MAKEFILE, flags=re.MULTILINE)[1]
    assert torch == f"python -m pip install {UV} && uv pip install --system --torch-backend=cpu {wanted}"
    assert "-c constraints.txt ./glassformer-*.whl" in app


def test_its_command_serves_the_app_in_the_frame_of_a_spaces_page_under_its_own_address(tmp_path):
    program, *options = command()
    assert program in PROJECT["project"]["scripts"]
    assert all(OPTIONS.match(one) for one in options)  # the command passes those on to Streamlit
    variables = dict(one.split("=", 1) for line in said("ENV") for one in line.split())
    options = [one for one in options if "port" not in one]  # the test has its own
    with serve(log=tmp_path / "log", options=options, environment=variables) as server:
        with urllib.request.urlopen(f"{server.url}/_stcore/health") as answer:
            assert answer.headers["Content-Security-Policy"] == "frame-ancestors 'self' https://huggingface.co"
        assert opens(server, "user-glassformer.hf.space")
        with RawClient(server.url) as visitor:
            assert not visitor.rerun(page="step", query="model=reverse&src=glass").errors
