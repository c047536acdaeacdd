"""What is asked about pieces has the answer of SentencePiece itself."""

import pytest
import sentencepiece

from glassformer.extensions.lessons.library.lesson import QuestionNotApplicable
from glassformer.extensions.lessons.library.lesson_files import lessons
from glassformer.extensions.lessons.library.posing import pose
from glassformer.extensions.lessons.library.survey import SHIPPED
from tests.extensions.lessons.library.posed import case, told

STEPS = lessons()["pieces"].steps


def test_pieces_are_those_that_the_library_cuts(run):
    folder, sentence = SHIPPED / run.checkpoint.name, run.trace.query.source
    [file] = [*folder.glob("source.model"), *folder.glob("pieces.model")][:1]
    library = sentencepiece.SentencePieceProcessor(model_file=str(file))
    cut = library.encode(sentence, out_type=str)
    answer = pose(STEPS[0], run).answer
    told(answer, len(cut), cut=" · ".join(cut))
    assert answer.usual == len(sentence.split())
    posed = pose(STEPS[2], run)  # of a word that is none
    cut = library.encode(posed.picked["made"], out_type=str)
    told(posed.answer, "smaller", k=len(cut))
    assert len(cut) > 1
    assert "".join(cut).replace("▁", "") == posed.picked["made"]


def test_the_mark_of_a_space_is_one():
    told(pose(STEPS[1], case("en-fr", "The dog bit the man.")).answer, "space", twice="The The")
    with pytest.raises(QuestionNotApplicable, match="mark ▁"):
        pose(STEPS[1], case("reverse", "lantern"))
