"""An error's text is English; its sentence can be said in the reader's language."""

import pickle

import pytest

from transformer.errors import CheckpointError, ConfigError, GlassformerError, QueryError, shown
from transformer.i18n import PSEUDO, Sentence, said, say


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
