"""Lessons: what each teaches, how long it takes, and the way into it."""

from transformer.checkpoint.load import Checkpoint
from ui.frame.sidebar import checkpoint_or_maps
from ui.frame.source_box import head_without_run
from ui.lessons import lesson_list
from ui.runs.open_run import publish
from ui.state import session
from words import say

session.begin("lessons")
head_without_run(say("Lessons"))
found = checkpoint_or_maps()
lesson_list.draw(found if isinstance(found, Checkpoint) else None)
publish(found)
