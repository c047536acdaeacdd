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

# Names of files, of a config's fields, of a change; what Python's JSON says of a text.
DATA = ["c.json", "t.csv", "n_decoder_layers", "n_encoder_layers", "zero-cross.3.1", "encoder", "decoder", "True"]
DATA += ["Expecting property name enclosed in double quotes", "broken", "config.json", "card.json", "title"]
DATA += ["examples", "parameters", "training.csv", "请问", "ba"]


def assert_said(*texts):
    for text in texts:
        assert isinstance(text, Sentence), text
        assert said(text, ENGLISH) == text
        assert wrong(said(text, PSEUDO), words_of(*DATA)) == []


def test_readers_of_one_trace_read_its_notes_in_their_languages(checkpoint):
    notes = run(checkpoint, checkpoint.query("請問 🦊 ba", max_new=1)).notes  # converted, and unknown
    assert len(notes) == 2
    with ThreadPoolExecutor(2) as readers:
        told = [list(readers.map(said, notes, [language] * 2)) for language in (ENGLISH, PSEUDO)]
    assert told[0] == list(notes)
    assert all(note.startswith("⟦") for note in told[1])
    assert pickle.loads(pickle.dumps(notes)) == notes
    assert_said(*notes)


@pytest.mark.parametrize(
    "refusal",
    [
        lambda: read_config(b'{"format_version": 1, "n_encoder_layers": "x"}', label="m/c.json"),
        lambda: read_config(b"{", label="m/c.json"),
        lambda: sentencepiece_check.check(b"\xff" * 40),
        lambda: read_curve(b"epoch,loss\n", label="m/t.csv"),
        lambda: parse("zero"),
        lambda: parse_links("3+4"),
    ],
)
def test_a_refusal_and_what_is_odd_about_a_checkpoint_are_said_whole(refusal, tmp_path):
    with pytest.raises((GlassformerError, ClauseError)) as refused:
        refusal()
    assert_said(refused.value.sentence)
    (tmp_path / "broken").mkdir()
    (entry,) = listing([tmp_path])
    _, warnings = read_card(b'{"title": 3, "examples": "x", "parameters": -1}')
    notes = read_curve(b"loss\n1\n\nx\n").notes
    assert (len(warnings), len(notes)) == (3, 2)
    assert_said(entry.error, *warnings, *notes)
