"""From what a session asks for to a run that can be drawn; pictures are declared with `picture.py`."""
