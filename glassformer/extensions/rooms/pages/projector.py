"""The projector view of a room."""

from glassformer.extensions.rooms.page import wall
from glassformer.state import session

session.begin("projector")
wall.draw()
