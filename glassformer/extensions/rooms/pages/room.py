"""Page script of A room, where rooms are opened, joined and taught."""

from glassformer.extensions.rooms import room_panels, room_session
from glassformer.frame.run_page import settle_defaults
from glassformer.frame.source_box import head
from glassformer.runs import loading
from glassformer.runs.run_address import publish_unopened
from glassformer.state import session
from transformer.i18n import say

session.begin("room")
if not room_session.current() and (usable := loading.usable()):
    settle_defaults(usable)  # who opens a room has a class look at what a bare address means to them
head(say("A room"))
room_panels.draw()
publish_unopened()
