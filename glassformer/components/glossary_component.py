"""Glossary component (Python side): term tooltips on every page, and the term list."""

from collections.abc import Callable, Sequence

from glassformer.components.custom_component import Element, told_text

# Underlines lie over the whole document, and definitions above it.
_MARKS = Element("glossary_marks", isolated=False)
_LIST = Element("glossary_list")


def glossary_marks(terms: Sequence[dict[str, str]], *, key: str, apart: str) -> None:
    """Underline the first occurrence of each term on the current page.

    Each has its `id`, `name` and `text`, optionally `also` (synonyms) and `among`: words of which one has to be in the
    same paragraph. `apart` are phrases in which the words of a term mean something else, separated by "|".
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
