"""Templates of the JavaScript, for the components' payloads.

The scripts contain their sentences in English (`glassformer/components/common/i18n.js`). For another language a
payload brings a table from the English template to the translated one. `make words` lists the templates in
`catalogues/browser.json`, as this module reads no scripts.
"""

import json
from functools import cache

from transformer.i18n import pseudo
from transformer.i18n.catalogue import ENGLISH, FOLDER, PSEUDO, plural_forms, template

LISTED = "browser.json"


@cache
def browser_words(language: str) -> dict[str, str | list[str]]:
    """The scripts' sentences by English template, those with a plural by the form for 1: all forms. English: empty."""
    if language == ENGLISH:
        return {}
    listed: list[list[str]] = json.loads((FOLDER / LISTED).read_text(encoding="utf-8"))
    return {forms[0]: _translated(forms, language) for forms in listed}


def _translated(forms: list[str], language: str) -> str | list[str]:
    if language == PSEUDO:
        marked = [pseudo.marked(pseudo.longer(form), nested=False) for form in forms]
        return marked if len(forms) > 1 else marked[0]
    return plural_forms(forms[0], forms[1], language) if len(forms) > 1 else template(forms[0], language)
