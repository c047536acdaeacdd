"""A room for a class: its page, its projector, and the line at the foot of every page."""
