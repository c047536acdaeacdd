"""Lesson library: public names of lesson records, TOML reader, and steps posed to a learner's run; module guide.

    lesson        what a lesson is, what picks and oracles are given, and what they answer with
    lesson_files  from a TOML file to one, with clear errors; plan/ has the lessons of the plan, a class brings others
    subjects      picks, which find in a run what is worth looking at, and oracles, which compute the answer from it
    posing        a step posed to one run
    survey        what the answers are over many sentences

Read them in this order. Learners predict before the demonstration: Crouch et al., "Classroom demonstrations: Learning
tools or entertainment?" (2004). This library draws nothing.
"""

from glassformer.extensions.lessons.library.lesson import (
    Answer,
    Ask,
    Case,
    Lesson,
    LessonError,
    LessonStep,
    Opening,
    Option,
    QuestionNotApplicable,
    Scene,
    Text,
)
from glassformer.extensions.lessons.library.lesson_files import lessons, read_folder, read_lesson
from glassformer.extensions.lessons.library.posing import Posed, opening_link, pose

__all__ = [
    "Answer",
    "Ask",
    "Case",
    "Lesson",
    "LessonError",
    "LessonStep",
    "Opening",
    "Option",
    "Posed",
    "QuestionNotApplicable",
    "Scene",
    "Text",
    "lessons",
    "opening_link",
    "pose",
    "read_folder",
    "read_lesson",
]
