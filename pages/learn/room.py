"""A room: a class follows its teacher through the app, and votes before an answer is shown."""

from ui.frame.foreign_page import publish
from ui.frame.source_box import head
from ui.room import room_panels
from ui.state import session
from words import say

session.begin("room")
head(say("A room"))
room_panels.draw()
publish()
