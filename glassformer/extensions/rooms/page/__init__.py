"""Classroom (room): its page, projector view, and status bar."""
