"""Glossary: terms, where each is shown, and its page."""

from glassformer.state.fields import Look, text


class GlossaryLook(Look):
    """What is looked at in the glossary."""

    term: str = text("term")  # A term of the glossary, by its English name; "" for none
