"""What is asked about pieces has the answer of SentencePiece itself."""

import pytest
import sentencepiece

from glassformer.extensions.lessons.library.case import QuestionNotApplicable
from glassformer.extensions.lessons.library.lesson_files import lessons
from glassformer.extensions.lessons.library.posing import pose
from glassformer.extensions.lessons.library.survey import SHIPPED
from tests.extensions.lessons.library.posed import SPOKEN, case

STEPS = lessons()["pieces"].steps
both = pytest.mark.parametrize(("name", "sentence"), SPOKEN)


def library(name):
    """The checkpoint's source vocabulary as the library reads it."""
    file = next(one for one in ("source.model", "pieces.model") if (SHIPPED / name / one).exists())
    return sentencepiece.SentencePieceProcessor(model_file=str(SHIPPED / name / file))


@both
def test_pieces_are_counted_as_the_library_cuts(name, sentence):
    cut = library(name).encode(sentence, out_type=str)
    answer = pose(STEPS[0], case(name, sentence)).answer
    assert answer.right == len(cut)
    assert answer.values["cut"] == " · ".join(cut)
    assert answer.usual == len(sentence.split())


@both
def test_a_word_that_is_none_is_cut_into_pieces_that_make_it_up(name, sentence):
    posed = pose(STEPS[2], case(name, sentence))
    made = posed.picked["made"]
    cut = library(name).encode(made, out_type=str)
    assert posed.answer.right == "smaller"
    assert len(cut) == posed.answer.values["k"] > 1
    assert "".join(cut).replace("▁", "") == made


def test_the_mark_of_a_space_is_one():
    posed = pose(STEPS[1], case("en-fr", "The dog bit the man."))
    assert posed.answer.right == "space"
    assert posed.answer.values["twice"] == "The The"
    with pytest.raises(QuestionNotApplicable, match="mark ▁"):
        pose(STEPS[1], case("reverse", "lantern"))
