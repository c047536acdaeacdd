"""The workflow of GitHub Actions runs targets that `make` has, with few rights and within 90 minutes."""

import re
import shlex

import yaml

from tests.deploy.test_containers import MAKEFILE, TORCH, UV
from tests.source_code import ROOT

WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
TARGETS = set(re.findall(r"^([a-z-]+):.*##", MAKEFILE, flags=re.MULTILINE))
JOBS = WORKFLOW["jobs"]
LENT = f'pip install {UV} && uv pip install --system "$TORCH"'


def test_each_step_is_a_target_of_make_or_an_action_of_github_by_its_major_version():
    steps = [step for job in JOBS.values() for step in job["steps"]]
    said = [step["run"] for step in steps if "run" in step]
    typed = [shlex.split(line) for line in said if line != LENT]
    assert said.count(LENT) == len(JOBS)
    assert {words[0] for words in typed} == {"make"}
    assert {target for words in typed for target in words[1:]} == {"test", "site", "wheel"} <= TARGETS
    assert all(re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"]) for step in steps if "uses" in step)


def test_it_may_only_read_and_uses_the_libraries_that_make_does():
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert all("permissions" not in job and job["timeout-minutes"] <= 90 for job in JOBS.values())
    assert JOBS["test"]["strategy"]["matrix"]["python"] == ["3.11", "3.13"]
    assert WORKFLOW["env"] == {"TORCH": TORCH, "UV_TORCH_BACKEND": "cpu"}


def test_what_is_kept_is_where_make_writes_it():
    given = [step["with"] for step in JOBS["build"]["steps"] if "path" in step.get("with", {})]
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["site_dir"]
    assert {one["name"]: one["path"] for one in given} == {"site": site, "wheel": "dist/*.whl"}
