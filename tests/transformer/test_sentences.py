"""What the library says, errors among it, is said whole, and each reader of one trace reads it in their language."""

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
from transformer.errors import CheckpointError, ClauseError, ConfigError, GlassformerError, QueryError, shown
from transformer.i18n import ENGLISH, PSEUDO, Sentence, said, say
from transformer.runs.interventions import parse
from transformer.text import sentencepiece_check


def test_an_error_keeps_its_sentence_and_names_its_field():
    template = "{name} holds {n:,} tokens; {most:,} are read."
    made = say(template, name="a.model", n=1200, most=1000)
    for error, text, pseudo in (
        *((kind(made), "a.model holds 1,200 tokens; 1,000 are read.",
           "⟦a.model hoolds 1,200 tookeens; 1,000 aaree reeaad.⟧") for kind in (GlassformerError, CheckpointError)),
        (ConfigError("n_heads", "found {found}, expected 1 or more.", found=0),
         "n_heads: found 0, expected 1 or more.", "⟦n_heads: ‹foouund 0, eexpeecteed 1 oor mooree.›⟧"),
    ):  # fmt: skip
        again = pickle.loads(pickle.dumps(error))
        for one in (error, again):
            assert (type(one), str(one), type(str(one))) == (type(error), text, str)
            assert said(one.sentence, PSEUDO).replace("·", "") == pseudo
    assert again.field == "n_heads"
    assert str(ConfigError("eps", "{field}, {message}", field=1, message=2)) == "eps: 1, 2"


def test_any_other_text_is_a_template():
    error = QueryError("no")
    assert isinstance(error.sentence, Sentence)
    odd = say("{name} cannot be read.", name="{n}.model")
    assert QueryError(odd).sentence is odd
    assert QueryError("Key", about="attention").sentence.__reduce__() == say("Key", about="attention").__reduce__()
    assert error.sentence == str(error) == "no"
    with pytest.raises(KeyError):
        QueryError("{n} tokens")


def test_what_is_shown_is_one_line_even_of_a_value_nested_too_deep():
    class Lines:
        def __repr__(self):
            return "a\nb"

    deep = []
    for _ in range(100_000):
        deep = [deep]
    assert shown(Lines()) == "a b"
    assert shown(deep) == "a value nested too deeply to show"
    assert shown("a" * 100) == "'" + "a" * 56 + "..."
    assert shown([16**5000]) == "an integer with more than 30 digits"


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
