"""Glossary: every term that the pages use, in a sentence, with the place where it is seen."""

from glassformer.frame.run_page import checkpoint_or_maps
from glassformer.frame.source_box import head_without_run
from glassformer.glossary import glossary_page
from glassformer.state import session
from transformer.i18n import say

session.begin("glossary")
head_without_run(say("Glossary"))
glossary_page.draw(checkpoint_or_maps())
