"""Drafts compared: what each costs and how much of it is kept."""
