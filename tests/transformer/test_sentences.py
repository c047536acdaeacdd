"""What the library says is said whole, and each reader of one trace reads it in their language."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.pseudo_language import words_of, wrong
from transformer import run
from transformer.analysis.alignment import parse_links
from transformer.checkpoint.card import read_card
from transformer.checkpoint.curve import read_curve
from transformer.checkpoint.listing import listing
from transformer.checkpoint.load import read_config
from transformer.errors import ClauseError, GlassformerError
from transformer.i18n import ENGLISH, PSEUDO, Sentence, said
from transformer.runs.interventions import parse
from transformer.text import sentencepiece_check

SOURCE = "請問 🦊 ba"  # converted, and unknown


def assert_said(text, data=()):
    assert isinstance(text, Sentence), text
    assert said(text, ENGLISH) == text
    assert wrong(said(text, PSEUDO), words_of(*data)) == []


def test_readers_of_one_trace_read_its_notes_in_their_languages(checkpoint):
    trace = run(checkpoint, checkpoint.query(SOURCE, max_new=1))
    assert len(trace.notes) == 2
    with ThreadPoolExecutor(2) as readers:
        english, pseudo = (
            list(readers.map(lambda note, language=language: said(note, language), trace.notes))
            for language in (ENGLISH, PSEUDO)
        )
    assert english == list(trace.notes)
    assert pickle.loads(pickle.dumps(trace.notes)) == trace.notes
    assert all(note.startswith("⟦") for note in pseudo)
    for note in trace.notes:
        assert_said(note, ["请问", "ba"])


# Names of files, of a config's fields, of a change; what Python's JSON says of a text.
DATA = ["c.json", "t.csv", "n_decoder_layers", "n_encoder_layers", "zero-cross.3.1", "encoder", "decoder", "True"]
DATA += ["Expecting property name enclosed in double quotes"]
REFUSED = {
    "a value inside a file": lambda: read_config(b'{"format_version": 1, "n_encoder_layers": "x"}', label="m/c.json"),
    "no JSON": lambda: read_config(b"{", label="m/c.json"),
    "a message": lambda: sentencepiece_check.check(b"\xff" * 40),
    "a curve": lambda: read_curve(b"epoch,loss\n", label="m/t.csv"),
    "a change": lambda: parse("zero"),
    "a link": lambda: parse_links("3+4"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_said_whole(name):
    with pytest.raises((GlassformerError, ClauseError)) as refused:
        REFUSED[name]()
    assert_said(refused.value.sentence, DATA)


def test_what_is_odd_about_a_checkpoint_is_said_whole(checkpoint_folder, tmp_path):
    broken = tmp_path / "broken"
    broken.mkdir()
    (entry,) = listing([tmp_path])
    assert_said(entry.error, ["broken", "config.json"])
    _, warnings = read_card(b'{"title": 3, "examples": "x", "parameters": -1}')
    assert len(warnings) == 3
    for warning in warnings:
        assert_said(warning, ["card.json", "title", "examples", "parameters"])
    notes = read_curve(b"loss\n1\n\nx\n").notes
    assert len(notes) == 2
    for note in notes:
        assert_said(note, ["training.csv"])
