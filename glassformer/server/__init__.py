"""The server: the queue before the model, turns of pages, rooms and their routes, and what may be uploaded."""
