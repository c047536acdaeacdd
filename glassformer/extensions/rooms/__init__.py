"""Rooms: a class follows its teacher through the app and votes; the presentation."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="rooms",
    pages="glassformer.extensions.rooms.page:PAGES",
    address="glassformer.extensions.rooms.room_session:ADDRESS",
    components={
        "presenter": "components/present/view.js",
        "room_bar": "components/room/view.js",
        "room_counts": "components/room/wall.js",
    },
    blocks="glassformer.extensions.rooms.room_view:BLOCKS",
    server="glassformer.extensions.rooms.routes:SERVER",
)
