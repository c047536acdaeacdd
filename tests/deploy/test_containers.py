"""The image for a school and a Hugging Face Space hold what there is, run our command and ask nobody their name."""

import json
import re
import shlex
import subprocess
import tomllib
import urllib.request

import yaml

from benchmarks.raw_client import RawClient
from glassformer.runs import loading
from tests.afresh import run_afresh
from tests.glassformer.server.test_cross_origin import opens
from tests.test_package import PROJECT
from tools.serve import ROOT, serve

SPACE = ROOT / "deploy" / "huggingface-space"
SETTINGS = yaml.safe_load((SPACE / "README.md").read_text(encoding="utf-8").split("---\n")[1])
MAKEFILE, HOSTING, LISTED = (
    (ROOT / name).read_text(encoding="utf-8") for name in ("Makefile", "docs/hosting.md", "requirements-dev.txt")
)
TORCH = re.search(r"^TORCH [?]= (.*)$", MAKEFILE, flags=re.MULTILINE)[1]
UV = "uv==0.13.9"  # which finds the build of torch for CPUs
COLOURS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}  # that a Space can have
OPTIONS = {"server.address", "server.allowedHosts", "browser.serverAddress"}


def instructions(file):
    """A function that gives what follows each of an instruction: `said("RUN")`."""
    lines = re.sub(r"\\\n", " ", file.read_text(encoding="utf-8")).splitlines()
    return lambda word: [line.split(maxsplit=1)[1] for line in lines if line.lstrip().startswith(f"{word} ")]


said, of_space = instructions(ROOT / "Containerfile"), instructions(SPACE / "Dockerfile")
COMMAND = json.loads(of_space("CMD")[0])


def variables(said):
    return dict(one.split("=", 1) for line in said("ENV") for one in line.split())


# ---------------------------------------------------------------- the image for a school


def test_what_is_copied_is_there_and_is_all_that_the_app_imports():
    copied = {one.removeprefix("./") for line in said("COPY") for one in line.split()[:-1]}
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = listed.stdout.splitlines()
    assert [one for one in copied if not any(f"{file}/".startswith(f"{one}/") for file in files)] == []
    packages = {file.split("/")[0] for file in files if file.endswith(".py") and "/" in file}
    assert packages - copied == {"benchmarks", "tests", "tools", "docs"} & packages  # the app needs none of these
    assert {"app.py", "main.py", ".streamlit", "requirements.txt", "checkpoints", "static"} <= copied


def test_its_commands_run_the_app_and_ask_how_it_is():
    command, health = (json.loads(line[line.index("[") :]) for line in said("CMD") + said("HEALTHCHECK"))
    (volume,), (port,), (user,) = said("VOLUME"), said("EXPOSE"), said("USER")
    as_make = re.search(r"^run:.*\n\t@\$\(PY\) (.*) \$\(ARGS\)$", MAKEFILE, flags=re.MULTILINE)[1]
    assert command == ["python", *as_make.split(), "--", loading.OPTION, volume]
    assert f"podman run -p {port}:{port} -v glassformer-models:{volume} glassformer" in HOSTING
    (owned,) = [part.split() for line in said("RUN") for part in line.split("&&") if "chown" in part]
    assert (user, owned) == ("glassformer", ["chown", "-R", user, volume, "/shared"])  # all that is written
    compile(health[-1], "healthcheck", "exec")
    assert f":{port}/_stcore/health" in health[-1]


def test_its_settings_are_settings_of_streamlit_and_nobody_is_asked_what_the_server_is_called():
    """Neither by what is printed at the start nor for a visitor from an origin that is not known."""
    given = variables(said)
    named = {one: "STREAMLIT_" + re.sub(r"(?<!^)(?=[A-Z])", "_", one.replace(".", "_")).upper() for one in OPTIONS}
    assert {*named.values()} <= given.keys()
    code = f"""
from streamlit import config, net_util
from streamlit.web import bootstrap
from streamlit.web.server import server_util
assert {OPTIONS!r} <= set(config.get_config_options())
for option in ("server.address", "browser.serverAddress"):
    config.set_option(option, {given!r}[{named!r}[option]])
net_util._make_blocking_http_get = lambda *a, **k: 1 / 0
bootstrap._print_url(False)
import app
assert not server_util.is_url_from_allowed_origins("http://stranger.example")
"""
    done = run_afresh(code)
    assert done.returncode == 0, done.stderr


def test_torch_is_the_build_that_make_installs():
    installs = [shlex.split(part) for line in said("RUN") for part in line.split("&&") if "pip" in part]
    assert said("ARG") == [f'TORCH="{TORCH}"']
    assert any("${TORCH}" in words for words in installs)
    assert any(words[-2:] == ["-r", "requirements.txt"] for words in installs)
    chosen = re.compile(re.search(r'grep -E "(.*?)" requirements-dev.txt > hosting.txt', "\n".join(said("RUN")))[1])
    hosting = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]["hosting"]
    assert len([line for line in LISTED.splitlines() if chosen.match(line)]) == len(hosting)


# ---------------------------------------------------------------- a Hugging Face Space


def test_its_settings_are_those_of_a_space_that_runs_a_container():
    assert (SETTINGS["sdk"], SETTINGS["license"]) == ("docker", PROJECT["project"]["license"].lower())
    assert {SETTINGS["colorFrom"], SETTINGS["colorTo"]} <= COLOURS
    assert len(SETTINGS["short_description"]) <= 60  # more is refused
    assert f"--server.port={SETTINGS['app_port']}" in COMMAND
    assert of_space("EXPOSE") == [str(SETTINGS["app_port"])]
    users = re.findall(r"useradd .*--uid 1000 (\w+)", "\n".join(of_space("RUN")))
    assert users == of_space("USER")
    assert of_space("WORKDIR")[-1] == f"/home/{users[0]}"


def test_make_puts_together_what_it_copies_and_it_has_the_versions_that_are_tested():
    recipe = re.search(r"^space:.*\n((?:\t.*\n)+)", MAKEFILE, flags=re.MULTILINE)[1]
    for source in [one for line in of_space("COPY") for one in line.split()[:-1]]:
        built = source.endswith(".whl") and "-t wheel -d dist/space" in recipe
        assert built or (source in recipe and (ROOT / source).is_file()), source
    torch, app = [line for line in of_space("RUN") if " pip " in line]
    assert torch == f"python -m pip install {UV} && uv pip install --system --torch-backend=cpu {TORCH}"
    assert "-c constraints.txt ./glassformer-*.whl" in app


def test_its_command_serves_the_app_in_the_frame_of_a_spaces_page_under_its_own_address(tmp_path):
    program, *options = COMMAND
    assert program in PROJECT["project"]["scripts"]
    assert all(re.match(r"--(server|browser)\.", one) for one in options)  # the command passes those on to Streamlit
    options = [one for one in options if "port" not in one]  # the test has its own
    with serve(log=tmp_path / "log", options=options, environment=variables(of_space)) as server:
        with urllib.request.urlopen(f"{server.url}/_stcore/health") as answer:
            assert answer.headers["Content-Security-Policy"] == "frame-ancestors 'self' https://huggingface.co"
        assert opens(server, "user-glassformer.hf.space")
        with RawClient(server.url) as visitor:
            assert not visitor.rerun(page="step", query="model=reverse&src=glass").errors
