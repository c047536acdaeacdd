"""The projector view of a room."""

from ui.room import wall
from ui.state import session

session.begin("projector")
wall.draw()
