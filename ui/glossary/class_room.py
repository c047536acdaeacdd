"""Terms of a class."""

from __future__ import annotations

from ui.glossary.term import Term
from words import say

TERMS = (
    Term(
        say("lesson", about="glossary"), say("A row of steps that lead through the live app, each with a question.")
    ),
    Term(
        say("prediction", about="glossary"),
        say("What the learner says will happen before it is shown."),
        among=say("lesson|reveal", about="glossary"),
    ),
    Term(say("reveal", about="glossary"), say("Showing what was covered, after the prediction.")),
    Term(say("deep link", about="glossary"), say("An address that opens exactly this view.")),
    Term(
        say("room", about="glossary"),
        say("A shared session in which a class follows its teacher."),
        among=say("room code|lesson", about="glossary"),
    ),
    Term(say("room code", about="glossary"), say("The short code by which a student joins a room.")),
    Term(
        say("follow the teacher", about="glossary"),
        say("The page goes where the teacher goes; it can be switched off at any time."),
    ),
    Term(say("anonymous", about="glossary"), say("Nobody, the teacher included, can see who answered what.")),
)
