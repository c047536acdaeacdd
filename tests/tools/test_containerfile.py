"""The Containerfile names only what there is, and its server asks nobody what it is called."""

import json
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

from glassformer.runs import loading
from tests.afresh import run_afresh
from tools.serve import ROOT

LINES = re.sub(r"\\\n", " ", (ROOT / "Containerfile").read_text(encoding="utf-8")).splitlines()

OPTIONS = {"server.address", "server.allowedHosts", "browser.serverAddress"}
HOSTING = (ROOT / "docs" / "hosting.md").read_text(encoding="utf-8")


def said(word):
    return [line.split(maxsplit=1)[1] for line in LINES if line.lstrip().startswith(f"{word} ")]


def tracked():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return listed.stdout.splitlines()


def test_what_is_copied_is_there_and_is_all_that_the_app_imports():
    copied = {Path(one).as_posix().removeprefix("./") for line in said("COPY") for one in line.split()[:-1]}
    files = tracked()
    for one in copied:
        assert any(file == one or file.startswith(f"{one}/") for file in files), one
    packages = {file.split("/")[0] for file in files if file.endswith(".py") and "/" in file}
    assert packages - copied == {"benchmarks", "tests", "tools", "docs"} & packages  # the app needs none of these
    assert {"app.py", "main.py", ".streamlit", "requirements.txt", "checkpoints", "static"} <= copied


def test_its_commands_run_the_app_and_ask_how_it_is():
    command = json.loads(said("CMD")[-1])
    (volume,), (port,) = said("VOLUME"), said("EXPOSE")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    as_make = re.search(r"^run:.*\n\t@\$\(PY\) (.*) \$\(ARGS\)$", makefile, flags=re.MULTILINE)[1]
    assert command == ["python", *as_make.split(), "--", loading.OPTION, volume]
    assert f"podman run -p {port}:{port} -v glassformer-models:{volume} glassformer" in HOSTING
    (owned,) = [part.split() for line in said("RUN") for part in line.split("&&") if "chown" in part]
    assert owned == ["chown", "-R", said("USER")[0], volume, "/shared"]  # all that is written
    health = json.loads(
        re.search(
            r"CMD (\[.*\])",
            " ".join(said("HEALTHCHECK"))
            or next(line for line in LINES if line.strip().startswith('CMD ["python", "-c"')),
        ).group(1)
    )
    compile(health[-1], "healthcheck", "exec")
    assert f":{said('EXPOSE')[0]}/_stcore/health" in health[-1]


def test_its_settings_are_settings_of_streamlit_and_nobody_is_asked_what_the_server_is_called():
    """Neither by what is printed at the start nor for a visitor from an origin that is not known."""
    given = {name: value for line in said("ENV") for name, _, value in map(parted, line.split())}
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


def parted(setting):
    return setting.partition("=")


def test_torch_is_the_build_that_make_installs_and_nobody_is_root():
    wanted = re.search(r"^TORCH \?= (torch==[\d.]+)", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)[1]
    installs = [shlex.split(part) for line in said("RUN") for part in line.split("&&") if "pip" in part]
    assert said("ARG") == [f'TORCH="{wanted}"']
    assert any("${TORCH}" in words for words in installs)
    assert any(words[-2:] == ["-r", "requirements.txt"] for words in installs)
    chosen = re.compile(re.search(r'grep -E "(.*?)" requirements-dev.txt > hosting.txt', "\n".join(LINES))[1])
    listed = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8").splitlines()
    hosting = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]["hosting"]
    assert len([line for line in listed if chosen.match(line)]) == len(hosting)
    assert said("USER") == ["glassformer"]
