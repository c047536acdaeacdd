"""The page What matters: what the output owes to each head and piece, and what adds to a logit."""

from glassformer.runs.picture import Page, PartEntry
from transformer.i18n import say

MATTERS = Page(
    "matters",
    say("What matters"),
    panel="matters_panel",
    entries=(
        PartEntry("heads", say("Heads"), "glassformer.extensions.effects.matters.heads_panel:draw"),
        PartEntry("pieces", say("Tokens"), "glassformer.extensions.effects.matters.credit_panels:draw"),
        PartEntry("logit", say("Logit"), "glassformer.extensions.effects.matters.credit_panels:draw_logit"),
    ),
)
