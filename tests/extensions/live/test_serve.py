"""`serve` shows models that are in memory in the app, from one server of the process that holds them."""

import socket
import subprocess
import sys

import pytest

import transformer
from glassformer.extensions.live import app_server
from glassformer.runs import loading, sources
from tests.source_code import ROOT
from transformer.errors import GlassformerError

# In a process of its own: the app changes settings of the whole process.
SERVES = """
import sys, urllib.request
sys.argv = ["ipykernel_launcher.py", "-f", "kernel.json"]  # as in a notebook
import glassformer, transformer
checkpoint = transformer.load("reverse")
first = glassformer.serve(checkpoint.model, (checkpoint.src_tokenizer, checkpoint.tgt_tokenizer), "glass", name="mine")
second = glassformer.serve("palindrome")
address = first.url.split("/?")[0]
print(urllib.request.urlopen(f"{address}/_stcore/health").read().decode())
print(first, second, "mine" in first._repr_html_())
from glassformer.runs import loading
print(list(loading.choosable("mine"))[-2:])
second.stop()
print([name for name in loading.choosable("mine") if name == "palindrome"])
"""


def test_models_in_memory_are_served_by_one_server(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SERVES], cwd=tmp_path, env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    health, said, listed, left = done.stdout.splitlines()
    assert health == "ok"
    assert "/?model=mine&src=glass> <palindrome: http://localhost:" in said
    assert said.endswith("/?model=palindrome> True")
    assert "mine" in listed
    assert left == "['palindrome']"  # the one that comes along
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def served(monkeypatch):
    """No server is started."""
    monkeypatch.setattr(app_server, "_running", lambda port: 8501)
    yield
    app_server.MODELS.clear()


@pytest.mark.usefixtures("served")
def test_a_served_model_opens_as_it_is_until_it_is_let_go():
    model = transformer.load("reverse")
    one = app_server.serve(model, name="now")
    (source,) = (one for one in sources.sources() if one.at("now"))
    entry = source.at("now")
    assert sources.opens(entry).open(entry) is model
    assert source.label(entry) == "now (in memory)"
    assert loading.trace_again("now", model.query("glass")).output_text == "ssalg"
    again = app_server.serve(transformer.load("palindrome"), name="now")
    assert (again.url, list(app_server.MODELS)) == (one.url, ["now"])
    one.stop()
    one.stop()
    assert source.at("now") is None


@pytest.mark.usefixtures("served")
def test_what_cannot_be_served_says_why():
    with pytest.raises(GlassformerError, match="cannot be examined"):
        app_server.serve(3)
    with socket.socket() as taken:
        taken.bind((app_server.HOST, 0))
        with pytest.raises(GlassformerError, match=r"port \d+: something else listens there; name another one"):
            app_server._start(taken.getsockname()[1])
