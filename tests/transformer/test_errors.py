"""An error's text is English; its sentence can be said in the reader's language."""

import pickle

import pytest

from transformer.errors import (
    CheckpointError,
    ConfigError,
    DataError,
    GlassformerError,
    QueryError,
    TokenizerError,
    shown,
)
from words import PSEUDO, said, say


@pytest.mark.parametrize("kind", [GlassformerError, CheckpointError, TokenizerError, QueryError, DataError])
def test_an_error_keeps_its_sentence(kind):
    error = kind(say("{name} holds {n:,} pieces; {most:,} are read.", name="a.model", n=1200, most=1000))
    assert str(error) == "a.model holds 1,200 pieces; 1,000 are read."
    assert type(str(error)) is str
    assert said(error.sentence, PSEUDO).replace("·", "") == "⟦a.model hoolds 1,200 piieecees; 1,000 aaree reeaad.⟧"
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), said(again.sentence, PSEUDO)) == (kind, said(error.sentence, PSEUDO))


def test_an_error_of_a_field_names_it():
    error = ConfigError("n_heads", say("found {found}, expected 1 or more.", found=0))
    assert str(error) == "n_heads: found 0, expected 1 or more."
    assert said(error.sentence, PSEUDO).replace("·", "") == "⟦n_heads: ‹foouund 0, eexpeecteed 1 oor mooree.›⟧"
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.field) == (str(error), "n_heads")


def test_plain_text_is_a_message_too():
    assert QueryError("no").sentence == str(QueryError("no")) == "no"


def test_a_value_is_shown_in_one_short_line():
    assert shown("a" * 100) == "'" + "a" * 56 + "..."
    assert said(shown(10**40), PSEUDO).startswith("⟦")
