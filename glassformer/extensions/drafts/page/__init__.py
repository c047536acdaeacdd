"""The part of the Search page that drafts and checks."""
