"""Attention maps shared by several pages."""
