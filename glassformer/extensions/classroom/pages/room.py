"""A room: a class follows its teacher through the app, and votes before an answer is shown."""

from ui.frame.foreign_page import publish
from ui.frame.source_box import head
from ui.frame.visitor import settle_defaults
from ui.room import room_panels
from ui.runs import loading
from ui.state import in_room, session
from words import say

session.begin("room")
if not in_room.current() and (usable := loading.usable()):
    settle_defaults(usable)  # who opens a room has a class look at what a bare address means to them
head(say("A room"))
room_panels.draw()
publish()
