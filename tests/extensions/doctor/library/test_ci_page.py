"""The training and the commands of the workflow on the page about the doctor in CI run as they are written."""

import json
import re
import runpy
from html import escape
from pathlib import Path

import pytest
import yaml

from glassformer.extensions.doctor.library.huggingface_callback import DoctorCallback
from glassformer.extensions.doctor.library.report import TESTS
from glassformer.extensions.doctor.library.watching import Watching, watch

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs" / "doctor-in-ci.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


def script():
    (found,) = (code for code in blocks("py") if "class Model" in code)
    return found


def workflow():
    (found,) = blocks("yaml")
    return yaml.load(found, yaml.BaseLoader)  # for which `on` is no Boolean


@pytest.fixture
def ends_with(tmp_path, monkeypatch, capsys):
    """A function that gives the status of a train.py and what it prints; its own process would import torch anew."""

    def run(code):
        (tmp_path / "train.py").write_text(code, encoding="utf-8")
        monkeypatch.chdir(tmp_path)
        with pytest.raises(SystemExit) as ended:
            runpy.run_path("train.py", run_name="__main__")
        return ended.value.code, capsys.readouterr().out

    return run


def test_the_workflow_trains_and_keeps_what_the_doctor_left():
    found = workflow()
    assert found["on"] == ["push", "pull_request"]
    (job,) = found["jobs"].values()
    install, train = (step["run"] for step in job["steps"] if "run" in step)
    assert ("pip install" in install, train) == (True, "python train.py")
    (kept,) = (step for step in job["steps"] if "upload-artifact" in step.get("uses", ""))
    assert (kept["if"], kept["with"]["path"]) == ("always()", "doctor")


def test_the_build_passes_and_leaves_lines_and_a_page(ends_with, tmp_path):
    ended, printed = ends_with(script().replace("every=150", "every=300"))  # which takes a third less time
    assert ended == 0, printed
    assert printed.startswith("model@300 is healthy")
    lines = [json.loads(line) for line in (tmp_path / "doctor" / "verdicts.jsonl").read_text("utf-8").splitlines()]
    assert [one["step"] for one in lines] == [0, 300]
    assert lines[0]["loss"] is None
    assert lines[1]["loss"] < 3
    assert not any(one["skipped"] for one in lines)
    assert {one["verdict"] for line in lines for one in line["tests"].values()} <= {"well", "look", "not_applicable"}
    assert set(lines[1]["tests"]) > {test.name for test in TESTS}
    page = (tmp_path / "doctor" / "report.html").read_text("utf-8")
    assert len(page) < 60_000
    assert "http" not in page
    assert "<script" not in page
    assert "<th>0<th>300" in page
    assert "model@300 is healthy" in page
    assert all(escape(str(test.title)) in page for test in TESTS)


def test_the_short_examples_name_what_there_is():
    short = "".join(code for code in blocks("py") if "class Model" not in code)
    names = {"watch": watch, "DoctorCallback": DoctorCallback, "step": Watching.step, "close": Watching.close}
    for name, there in names.items():
        assert name in short
        assert callable(there)
    compile(short, "short", "exec")
