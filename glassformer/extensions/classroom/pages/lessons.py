"""Lessons: what each teaches, how long it takes, and the way into it."""

from glassformer.extensions.classroom import lesson_list
from glassformer.frame.run_page import checkpoint_or_maps
from glassformer.frame.source_box import head_without_run
from glassformer.runs.run_address import publish
from glassformer.state import session
from transformer.i18n import say

session.begin("lessons")
head_without_run(say("Lessons"))
found = checkpoint_or_maps()
lesson_list.draw()
publish(found)
