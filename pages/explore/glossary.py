"""Glossary: every term that the pages use, in a sentence, with the place where it is seen."""

from ui.frame.sidebar import checkpoint_or_maps
from ui.frame.source_box import head_without_run
from ui.glossary import glossary_page
from ui.state import session
from words import say

session.begin("glossary")
head_without_run(say("Glossary"))
glossary_page.draw(checkpoint_or_maps())
