"""The glossary in the browser: terms underlined on every page with what they mean, and a list of all."""

from collections.abc import Callable, Sequence

from glassformer.components.element import Element, told_text

# Underlines lie over the whole document, and definitions above it.
_MARKS = Element("glossary_marks", isolated=False)
_LIST = Element("glossary_list")


def glossary_marks(terms: Sequence[dict[str, str]], *, key: str, apart: str) -> None:
    """Underline terms where they first stand on the page, whatever page it is.

    Each has its `id`, `name` and `text`, and where it has such, the words `also` used for it and the words `among`
    which alone it is a term. `apart` are phrases in which the words of a term mean something else, with "|" between.
    """
    _MARKS.draw({"terms": terms, "apart": apart}, key=key)


def glossary_list(terms: Sequence[dict[str, str]], *, key: str, chosen: str, on_choice: Callable[[], None]) -> None:
    """Draw all terms with a field to search in; `chosen` is the id of the one that is shown first, "" for none.

    Each also has the `place` where it is seen and its `address`, if it is seen anywhere. `on_choice` is called when
    the reader chose another; `chosen_term(key)` tells which.
    """
    _LIST.draw({"terms": terms, "chosen": chosen}, key=key, hears={"term": on_choice})


def chosen_term(key: str) -> str:
    """The id of the term that the reader chose; for use inside an `on_choice` callback."""
    return told_text(key, "term")
