"""An upload is read by another process that may fail, hang or lie; only what it wrote anew is opened here."""

import gc
import json
import os
import subprocess
from functools import partial
from pathlib import Path

import pytest
import safetensors.torch
import torch
from safetensors.torch import save

from glassformer.extensions.importers.library import opening
from glassformer.extensions.uploads.library import upload_worker
from glassformer.extensions.uploads.library.archives import UploadLimits
from glassformer.extensions.uploads.library.upload_folder import Received
from glassformer.extensions.uploads.library.upload_worker import Worker, sentence
from tests.browser import foreign_models
from tests.extensions.importers.library.tutorial_models import Annotated, at_random
from tests.extensions.tokenizers import test_hostile_rules
from tests.extensions.uploads.files import contents, zipped
from tests.glassformer.waiting import until
from tests.healthy import DATA
from transformer.checkpoint import load as native
from transformer.checkpoint.opening import load
from transformer.errors import CheckpointError
from transformer.i18n import in_every_language, joined, said, say, say_n
from transformer.runs.run_file import run_bytes

REVERSE = foreign_models.REVERSE


@pytest.fixture(scope="module")
def worker():
    found = Worker()
    yield found
    pid = found.pid
    found.end()
    assert pid is not None
    assert not Path(f"/proc/{pid}").exists()


@pytest.fixture
def read(worker, tmp_path):
    """A function that hands files in; gives what came of it, and the folder that can be opened."""

    def go(files, **options):
        folder = tmp_path / "upload"
        (folder / "received").mkdir(parents=True, exist_ok=True)
        received = [Received(name, folder / "received" / str(number)) for number, name in enumerate(files)]
        for one in received:
            one.path.write_bytes(files[one.name])
        return worker.read(received, folder, title="model", pickles=True, **options), folder / "made" / "model"

    return go


OURS, WEIGHTS = contents(REVERSE), "model.safetensors"


def test_a_saved_run_is_checked_and_kept_as_it_is(read):
    content = run_bytes(native.load(REVERSE).run("glass"))
    result, made = read({"mine.glass": content})
    assert not result.native
    assert contents(made) == {"mine.glass": content}
    with pytest.raises(CheckpointError, match=r"mine\.glass: is cut off"):
        read({"mine.glass": content[:-9]})


LETTERS = b"a\nb\nc\nd\n<pad>\n<s>\n</s>"
ANSWERS = {"scale_embedding": True, "activation": "relu", "pad_id": 0, "bos_id": 2, "eos_id": 3}


def training(folder):
    """A pickle with more than the weights around them."""
    foreign_models.tutorial(folder)
    state = torch.load(folder / "lesson.pt")
    torch.save({"epoch": 3, "config": {"n_heads": 4}, "model_state_dict": state}, folder / "lesson.pt")


def parts(folder, *, index):
    """Weights in two files, with the settings of a run, and perhaps a list of what is where."""
    state = at_random(Annotated()).state_dict()
    where = {name: f"pytorch_model-0000{1 + i % 2}-of-00002.bin" for i, name in enumerate(state)}
    for file in set(where.values()):
        torch.save({name: one for name, one in state.items() if where[name] == file}, folder / file)
    if index:
        (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": where}))
    (folder / "hparams.yaml").write_text("heads: 4\nnorm_first: true\n")


def named(folder, *, name):
    """Weights of any name, and the list of pieces beside them."""
    torch.save(at_random(Annotated(vocabs=(7, 7))).state_dict(), folder / name)
    (folder / "letters.txt").write_bytes(LETTERS)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("write", "answers", "source"),
    [
        (foreign_models.marian, {}, "the cat sees a dog"),
        (training, None, ""),
        (partial(parts, index=True), ANSWERS, ""),
        (partial(parts, index=False), ANSWERS, ""),
        (partial(named, name="lesson.tar"), None, ""),
        (partial(named, name="model.safetensors"), None, ""),
    ],
    ids=["Hugging Face", "pickle", "parts, index", "parts", "any name", "wrong name"],
)
def test_what_is_written_anew_is_what_came(read, tmp_path, write, answers, source, packed):
    came = tmp_path / "model"
    came.mkdir()
    write(came)
    files = contents(came) | ({"README.md": b"# about", "modeling.py": b"import os"} if packed else {})
    inside = {f"run/{name}": one for name, one in files.items()}
    result, made = read({"all.zip": zipped(inside)} if packed else files)
    assert (result.native, sorted(result.left_out)) == (False, sorted(files.keys() - contents(came).keys()))
    expected, found = (opening.preview(folder, inside=folder).report for folder in (came, made))
    assert (found.fields, found.pieces) == (expected.fields, expected.pieces)
    assert [str(note) for note in found.notes] == [str(note) for note in expected.notes]
    assert found.source in (expected.source, "pytorch_model.bin")  # no name that nobody gave
    if answers is not None:
        here, there = (load(folder, answers=answers) for folder in (came, made))
        ids = torch.tensor([here.src_tokenizer.encode(source).ids if source else [5, 6, 7, 8]])
        with torch.inference_mode():
            assert torch.equal(here.model(ids, ids), there.model(ids, ids))


def test_a_checkpoint_of_ours_is_written_anew_with_the_same_values(read):
    before = safetensors.torch.load(OURS[WEIGHTS])
    result, folder = read(OURS | {WEIGHTS: save(before, metadata={"note": "<script>"})})
    assert result.native
    assert b"script" not in (folder / WEIGHTS).read_bytes()
    after = safetensors.torch.load_file(folder / WEIGHTS)
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert native.load(folder).run("glass").output_text == "ssalg"
    assert {path.name for path in folder.iterdir()} <= OURS.keys()


ONES = {"a.safetensors": save({"w": torch.ones(2)})}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "None of the files contains weights (nothing)"),
        ({"README.md": b"x"}, "None of the files contains weights ('README.md')"),
        (ONES | {"config.json": b"{" * 200_000}, "config.json: its brackets are nested"),
        (ONES | {"b.model": b"<html>"}, "b.model: is not a SentencePiece model"),
        (ONES | {"vocab.txt": b"\xff\xfe"}, "vocab.txt: is not UTF-8 text"),
        (ONES, "no tensor has a name that is usual for a layer"),
        ({"a.pt": b"", "A.PT": b""}, "count as the same file name"),
        ({"model.safetensors.index.json": b'{"weight_map": {"a": "b.safetensors"}}'}, "none of those was uploaded"),
        (OURS | {WEIGHTS: OURS[WEIGHTS][:-1000]}, "model.safetensors: is cut off: its tensors need"),
    ],
    ids=range(9),
)
def test_what_is_refused_says_which_file_and_why(read, files, message):
    with pytest.raises(CheckpointError) as caught:
        read(files)
    assert message in str(caught.value)
    assert "/tmp" not in str(caught.value)


def test_it_is_ended_when_it_takes_too_much(read, worker, monkeypatch):
    many = OURS | {"many.json": json.dumps(list(range(10**6))).encode()}
    for files, limits, why in (
        (many, {"memory": 2**20}, "more memory than one upload may"),
        (OURS, {"seconds": 0}, "takes longer than the 0 seconds"),
        (OURS, {"unpacked": 1000}, "bytes in total; at most 1,000 are allowed"),
    ):
        with pytest.raises(CheckpointError, match=why):
            read(files, limits=UploadLimits(**limits))
    monkeypatch.setattr(upload_worker, "LOOK_SECONDS", 0)  # a fast machine has read it before it is asked
    with pytest.raises(CheckpointError, match="stopped unexpectedly"):
        read(OURS, stop=lambda: True)
    assert worker.pid is not None
    assert read(OURS)[0].native  # and the next one is read as ever


ECHO = """
import json, sys
print("ready", flush=True)
for line in sys.stdin:
    request = json.loads(line)
    with open(request["folder"] + "/result.json", "w") as file:
        json.dump({"refused": {"en": "It is damaged."}}, file)
    print("done", flush=True)
"""


def test_one_that_was_killed_is_started_again_and_what_is_read_then_counts(tmp_path, monkeypatch):
    """A process that only answers, which starts at once."""
    (tmp_path / "echo.py").write_text(ECHO)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(upload_worker, "MODULE", "echo")
    light = Worker()
    light.warm()
    for _ in range(2):
        os.kill(light.pid, 9)
        (tmp_path / "upload").mkdir(exist_ok=True)
        with pytest.raises(CheckpointError, match="It is damaged"):
            light.read([], tmp_path / "upload", title="m", pickles=True)
    light.end()


NATIVE = b'{"native": true, "left_out": []}'


@pytest.mark.parametrize(
    ("record", "write"),
    [
        *((record, lambda _: None) for record in (b"[]", b'{"refused": 7}', b'{"native": 1}', b"{" * 10**6)),
        (NATIVE, lambda folder: (folder / "model.safetensors").symlink_to("/etc/passwd")),
        (NATIVE, lambda folder: (folder / "evil.pt").write_bytes(b"x")),
        (NATIVE, lambda folder: os.mkfifo(folder / "model.safetensors")),
        (NATIVE, lambda folder: (folder / "config.json").mkdir()),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_the_process_says_and_makes_is_not_trusted(read, worker, tmp_path, monkeypatch, record, write):
    """Were it taken over, it could write anything: then nothing of it is opened."""

    def send(_):
        (tmp_path / "upload" / "made" / "model").mkdir(parents=True)
        write(tmp_path / "upload" / "made" / "model")
        (tmp_path / "upload" / "result.json").write_bytes(record)

    monkeypatch.setattr(worker, "_send", send)
    monkeypatch.setattr(worker, "_line", lambda _: "done")
    with pytest.raises(CheckpointError):
        read({"a.safetensors": b""})


def with_tokenizer(**parts):
    """A small GPT-2 with a tokenizer.json of some parts."""
    return contents(DATA / "gpt2") | {"tokenizer.json": test_hostile_rules.content(**parts)}


def children():
    """Processes that read a tokenizer.json, of this session: others may run such tests, too."""
    found = subprocess.run(["pgrep", "-f", "tokenizers_worker.py", "-s", "0"], capture_output=True, text=True)
    return set(found.stdout.split())


def test_a_tokenizer_json_is_read_by_a_process_that_ends_with_the_one_that_reads_it(read):
    before = children()
    result, folder = read(with_tokenizer())
    assert not result.native
    assert load(folder).src_tokenizer.encode("a").ids == (1,)
    gc.collect()
    until(lambda: children() <= before)
    # Rules that make thousands of characters of each that is tried.
    twice = {"type": "Replace", "pattern": {"Regex": "."}, "content": "xx"}
    endless = with_tokenizer(normalizer={"type": "Sequence", "normalizers": [twice] * 13})
    with pytest.raises(CheckpointError, match="takes longer than the 1 seconds"):
        read(endless, limits=UploadLimits(seconds=1))
    until(lambda: children() <= before)


NESTED = say(
    "{label}: {problem}; {names}.",
    label="a.pt",
    problem=say_n("{n:,} byte is missing", "{n:,} bytes are missing", 1200),
    names=joined(", ", ["x", say("none")]),
)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_sentence_arrives_from_there_as_it_was_said(language):
    for one in (NESTED, say("{share:.1%} and {{braces}}", share=0.25), say("{found:.1f}", found=float("nan"))):
        there = sentence(json.loads(json.dumps(in_every_language(one))))
        assert said(there, language) == said(one, language)


def test_what_is_no_sentence_of_ours():
    hostile = ("{x:>999999999}", "{x.__class__}", "{0.__class__}", "{}", "{", "x" * 10_000, 3, None, {"en": "deep"})
    for data in (None, {}, "en", {"zh": "没有"}, *({"en": text} for text in hostile), {"en": "a", "zh": "{x}"}):
        assert sentence(data) == "The files cannot be read."
