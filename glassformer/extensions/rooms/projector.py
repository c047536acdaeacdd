"""The projector view of a room."""

from glassformer.extensions.rooms import room_view
from glassformer.state import session

if __name__ == "__main__":
    session.begin("projector")
    room_view.draw()
