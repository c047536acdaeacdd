"""A saved run opens in the app and in a notebook without its model, its pictures are the same, and it is verified."""

import io
import re
import subprocess
import sys
from dataclasses import replace

import pytest

import transformer
from glassformer.extensions.saving import notebook, run_commands
from glassformer.extensions.saving.recorded_checkpoint import FORMAT
from glassformer.extensions.uploads.library import upload_folder
from glassformer.extensions.uploads.library.upload_folder import Received
from glassformer.runs import loading
from tests.extensions.saving.notebook.test_runs import charts, framed
from tests.pages.conftest import ATTENTION, CHECKPOINTS, ROOT, STEP, check
from tests.pages.conftest import open_page as open_page
from tests.pages.conftest import shipped_checkpoints_alone as shipped_checkpoints_alone
from tests.pages.reading import figure, sentences
from transformer import Beam
from transformer.__main__ import main
from transformer.checkpoint.listing import listing
from transformer.errors import DataError, QueryError, TokenizerError

SENTENCE = "glass"
WITHOUT = """
import sys, transformer
sys.modules["kaleido"] = None  # as on a machine without it: nothing is drawn in a browser
trace = transformer.load_run(sys.argv[1])
page = trace.show("attention.overview")._repr_html_()
from transformer.checkpoint.load import in_memory
print(in_memory(trace.query.checkpoint), len(page) > 100_000, trace.output_text)
"""


@pytest.fixture
def folder(reverse, tmp_path, monkeypatch):
    """A folder of checkpoints with a saved run and a broken one."""
    query = reverse.query(SENTENCE, decoding=Beam(size=2), max_new=20)
    reverse.run(query).save(tmp_path / "mine.glass")
    (tmp_path / "broken.glass").write_bytes((tmp_path / "mine.glass").read_bytes()[:900])
    monkeypatch.setenv(loading.ENVIRONMENT, str(tmp_path))
    return tmp_path


def drawn(trace, picture):
    """The figures and their alternative texts, in each language."""
    told = framed(trace.show(picture)._repr_html_())
    return [[(chart["figure"], chart["alt"]) for chart in charts(one)] for one in told]


def test_a_run_is_listed_by_its_model_and_sentence(folder):
    broken, mine = listing([folder])
    assert (mine.name, mine.title, mine.holds, mine.error) == ("mine.glass", f"reverse: {SENTENCE}", "run", None)
    assert "cut off" in str(broken.error)
    content = (folder / "mine.glass").read_bytes()
    taken = {
        name: FORMAT.takes(name, io.BytesIO(content), len(content)) for name in ("mine.glass", "model.safetensors")
    }
    assert taken == {"mine.glass": True, "model.safetensors": False}


def test_the_app_shows_it_as_it_shows_the_model(folder, open_page):
    saved = open_page(ATTENTION, model="mine.glass", kind="cross", panel="head", layer=2, head=1)
    live = open_page(ATTENTION, model="reverse", src=SENTENCE, how="beam", beam=2, kind="cross", panel="head", layer=2,
                     head=1)  # fmt: skip
    one, other = (figure(page, "head_map") for page in (saved, live))
    assert one["data"][0]["z"] == other["data"][0]["z"]
    assert one["layout"]["xaxis"]["ticktext"] == other["layout"]["xaxis"]["ticktext"]
    step = open_page(STEP, model="mine.glass")
    assert not step.error
    assert step.text_input(key="source").value == SENTENCE


def test_another_sentence_and_what_needs_the_model_are_refused_in_a_sentence(folder, open_page):
    step = open_page(STEP, model="mine.glass", src="other")
    assert "is a saved run: it has one sentence" in sentences(step)
    assert not step.error
    inside = open_page(ROOT / "pages" / "explore" / "inside.py", model="mine.glass", panel="lens")
    assert "not the model, which this needs" in inside.error[0].value.replace("\\", "")
    checkpoints = open_page(CHECKPOINTS, model="mine.glass")
    assert not check(checkpoints).error or all("broken" in one.value for one in checkpoints.error)


def test_the_run_answers_only_its_own_query(folder):
    found = transformer.load(folder / "mine.glass")
    trace, encode = found.run(found.only_query), found.src_tokenizer.encode
    assert trace.output_text == SENTENCE[::-1]
    assert found.run_batch([found.only_query]) == (trace,)
    with pytest.raises(QueryError, match=r"it has the sentence glass as it was decoded then, and no other"):
        found.run("stone")
    [refused] = found.run_together([found.query("stone")])
    assert isinstance(refused, QueryError)
    for ask in (lambda: found.model.anatomy, lambda: found.replay(trace, ["*"]), lambda: encode("stone")):
        with pytest.raises((QueryError, TokenizerError), match="not the model, which this needs"):
            ask()
    assert encode(SENTENCE).pieces == tuple(SENTENCE)
    assert found.tgt_tokenizer.decode(trace.tgt_ids) == trace.output_text
    assert found.content_hash != trace.checkpoint
    layers = found.each_layer(trace, "cross", lambda maps, layer: (layer, maps.shape), layers=None)
    assert [layer for layer, _ in layers] == list(range(len(trace.maps("cross"))))


def test_a_notebook_shows_it_without_the_model(folder):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, folder / "mine.glass"], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout.split() == ["None", "True", SENTENCE[::-1]]


@pytest.mark.parametrize("picture", ["step", "attention.overview", "attention.head_map", "search.search_before"])
def test_its_pictures_in_a_notebook_are_those_of_the_model(reverse, no_images, monkeypatch, picture):
    trace = reverse.run(SENTENCE)
    live = drawn(trace, picture)
    monkeypatch.setattr(notebook, "in_memory", lambda _: None)
    assert drawn(trace, picture) == live


def test_an_upload_is_kept_as_it_is_or_refused(folder, tmp_path):
    made, work = tmp_path / "made", tmp_path / "work"
    made.mkdir()
    work.mkdir()
    files = [Received("mine.glass", folder / "mine.glass"), Received("notes.txt", folder / "broken.glass")]
    found = upload_folder.read(files, made, work=work)
    assert not found.native
    assert found.left_out == ("notes.txt",)
    entry = FORMAT.look(made, "upload:x", made)
    assert (entry.holds, entry.folder.name, entry.error) == ("run", "mine.glass", None)
    with pytest.raises(DataError, match=r"broken\.glass: is cut off"):
        upload_folder.read([Received("broken.glass", folder / "broken.glass")], made, work=work)


def test_a_run_is_verified_by_running_it_again(reverse, folder, capsys):
    replace(reverse.run("mi"), checkpoint="elsewhere").save(folder / "other.glass")
    for arguments, code, says in (
        (["mine.glass"], 0, "output, probabilities, maps and masks are the same"),
        (["mine.glass", "--checkpoint", "palindrome"], 1, "the model is another"),
        (["broken.glass"], 2, "cut off"),
        (["other.glass"], 2, "the model elsewhere of this run cannot be opened; name it with --checkpoint"),
    ):
        assert main(["verify", str(folder / arguments[0]), *arguments[1:]]) == code
        assert says in "".join(capsys.readouterr())
    saved = transformer.load_run(folder / "mine.glass")
    lines, _ = run_commands.differences(saved, reverse.run("stone"))
    assert any("becomes 'enots', from step 1 on" in line for line in lines)
    assert run_commands.differences(saved, saved) == ([], 0)


def test_the_tree_and_maps_as_text_for_other_programs(reverse, tmp_path, capsys):
    tree, table = tmp_path / "tree.dot", tmp_path / "map.tex"
    asked = ["picture", "reverse", SENTENCE, "how=beam", "beam=2"]
    assert main([*asked, "--panel", "search.search_tree", "--out", str(tree)]) == 0
    lines = tree.read_text().splitlines()
    nodes = {found[1] for line in lines if (found := re.match(r"  (\w+) \[label=", line))}
    edges = [re.match(r'  (\w+) -> (\w+) \[label="(-?[\d.]+)", style=\w+\];', line) for line in lines if "->" in line]
    assert all(edges)
    assert {edge[1] for edge in edges} | {edge[2] for edge in edges} == nodes
    assert sum("style=bold" in line and "->" not in line for line in lines) == 2  # the results

    assert main([*asked, "layer=2", "head=1", "--out", str(table)]) == 0
    text = table.read_text()
    trace = reverse.run(reverse.query(SENTENCE, decoding=Beam(size=2)))
    cells = re.findall(r"^(\d+) (\d+) ([\d.e-]+|nan)$", text, re.MULTILINE)
    weights = trace.maps("cross")[1, 0]
    assert len(cells) == weights.size
    assert all(abs(float(value) - weights[int(y), int(x)]) < 1e-5 for x, y, value in cells)
    assert r"\begin{axis}" in text
    assert f"mesh/cols={weights.shape[1]}" in text

    assert main([*asked, "--out", str(tmp_path / "map.dot")]) == 2
    assert "draw it with --panel search.search_tree" in capsys.readouterr().err
    assert main([*asked, "--panel", "step.candidates", "--out", str(tmp_path / "map.tex")]) == 2
    assert ".tex is for maps" in capsys.readouterr().err
