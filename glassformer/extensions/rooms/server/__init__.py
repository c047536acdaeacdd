"""Rooms on the server: state, store, registry, HTTP routes, events."""
