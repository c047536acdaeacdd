"""Collect the sentences of the code for translators, and compile what they wrote.

    python tools/catalogues.py              # after a change of sentences: what `make words` runs
    python tools/catalogues.py --new zh     # begin a language

Writes into transformer/i18n/catalogues/: `messages.pot` (all sentences), each language's `messages.po` (kept by hand;
new sentences are added, changed ones turn fuzzy) and its `messages.mo` (what the app reads), and `browser.json` (the
templates of the scripts). Paths of the code stand in `messages.pot` alone; line numbers stand nowhere, as they would
change with every edit. Needs Babel, a development requirement.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_javascript
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).resolve().parent.parent
CATALOGUES = ROOT / "transformer" / "i18n" / "catalogues"
PYTHON = ("*.py", "pages/**/*.py", "glassformer/**/*.py", "transformer/**/*.py")
TABLES = "glassformer/**/*.toml"  # those that say which of their texts are sentences: `transformer.i18n.sentence`
SCRIPTS = "glassformer"
TEMPLATE, TRANSLATED, COMPILED, BROWSER = "messages.pot", "messages.po", "messages.mo", "browser.json"
NOTE = "For translators:"
"""A comment that begins so, on the line above a sentence, goes into the catalogues."""

ERRORS = {
    "BusyError", "CheckpointError", "ClauseError", "ConfigError", "DataError", "GlassformerError", "LessonError",
    "MapsError", "NotFiniteError", "QuestionNotApplicable", "NotTestable", "InterventionError", "QueryError",
    "QuestionsError", "UnansweredError", "StoreError", "TokenizerError", "_WrongError",
}  # fmt: skip
"""They take what `say` or `say_n` takes, or a sentence; a test finds one that is missing."""
SAYING = {"say": slice(1), "say_n": slice(2), **dict.fromkeys(ERRORS, slice(2)), "ConfigError": slice(1, 3)}
"""Which arguments are templates; of an error one, or two as of `say_n`."""

_SAID = re.compile(rf"\b(?:{'|'.join(SAYING)})\(")
_SAID_IN_SCRIPTS = {"say": 1, "sayN": 2, "sayNodes": 1}
_READ: Any = {"encoding": "utf-8", "parse_template_string": True}  # `${say("…")} …` is a call, too
_LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)  # a catalogue changes with its sentences, not with the clock


def collected(root: Path = ROOT) -> Catalog:
    """All sentences of the code, in the order of its files."""
    catalogue = Catalog(project="Glassformer", creation_date=_LONG_AGO, revision_date=_LONG_AGO, fuzzy=False)
    for pattern in PYTHON:
        for file in sorted(root.glob(pattern)):
            for template, about, notes in said_in_python(file.read_text(encoding="utf-8")):
                path = file.relative_to(root).as_posix()
                catalogue.add(template, locations=[(path, 0)], context=about, auto_comments=notes)
    for file in sorted(root.glob(TABLES)):
        for text, about, notes in said_in_table(file.read_text(encoding="utf-8")):
            catalogue.add(text, locations=[(file.relative_to(root).as_posix(), 0)], context=about, auto_comments=notes)
    for file, forms in said_in_scripts(root):
        said: str | tuple[str, ...] = forms if len(forms) > 1 else forms[0]
        catalogue.add(said, locations=[(file.relative_to(root).as_posix(), 0)])
    return catalogue


def said_in_python(text: str) -> Iterator[tuple[str | tuple[str, str], str | None, list[str]]]:
    """Each sentence of a file, said or an error's: its template or both, its context, its notes for translators."""
    if not _SAID.search(text):
        return
    lines = text.splitlines()
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    for node in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
        name = getattr(node.func, "id", "")
        templates = node.args[SAYING[name]] if name in SAYING else []
        if not templates or (name in ERRORS and not isinstance(templates[0], ast.Constant)):
            continue  # an error may be given a sentence
        forms = [ast.literal_eval(form) for form in templates]
        about = next((ast.literal_eval(word.value) for word in node.keywords if word.arg == "about"), None)
        above = lines[node.lineno - 2].strip(" #") if node.lineno > 1 else ""
        notes = [above.removeprefix(NOTE).strip()] if above.startswith(NOTE) else []
        yield forms[0] if len(forms) == 1 else (forms[0], forms[1]), about, notes


def said_in_table(text: str) -> Iterator[tuple[str, str | None, list[str]]]:
    """Each sentence of a file of data, as `i18n.tables` reads it: its template, its context, its notes."""
    whole = tomllib.loads(text)
    kinds = whole.pop("sentences", {})
    found: list[tuple[str, Any]] = list(whole.items())
    for key, one in found:  # grows meanwhile
        if isinstance(one, dict):
            found += one.items()
        elif isinstance(one, list):
            found += [(key, each) for each in one]
        elif isinstance(one, str) and key in kinds:
            yield one, kinds[key].get("about"), [kinds[key]["note"]] if "note" in kinds[key] else []


def said_in_scripts(root: Path = ROOT) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Each call of `say`, `sayN` and `sayNodes` in the scripts: the file, and its template or both."""
    for file in sorted((root / SCRIPTS).rglob("*.js")):
        code = io.BytesIO(file.read_bytes())
        for _, name, messages, _ in extract_javascript(code, dict.fromkeys(_SAID_IN_SCRIPTS), [], _READ):
            given = (messages,) if isinstance(messages, str) else tuple(messages)
            forms = tuple(form for form in given[: _SAID_IN_SCRIPTS[str(name)]] if isinstance(form, str) and form)
            if len(forms) == _SAID_IN_SCRIPTS[str(name)]:
                yield file, forms


def browser_forms(root: Path = ROOT) -> list[list[str]]:
    """The templates of the scripts, each once, for `transformer.i18n.catalogue`."""
    return [list(forms) for forms in sorted({forms for _, forms in said_in_scripts(root)})]


def as_text(catalogue: Catalog) -> bytes:
    """A catalogue as a file."""
    catalogue.header_comment = "# Sentences of Glassformer. Written by `make words`."
    catalogue.msgid_bugs_address = catalogue.last_translator = catalogue.language_team = ""
    file = io.BytesIO()
    write_po(file, catalogue, width=110, include_lineno=False, ignore_obsolete=True)
    return file.getvalue()


def compiled(catalogue: Catalog) -> bytes:
    """A catalogue as the app reads it, without what is fuzzy."""
    file = io.BytesIO()
    write_mo(file, catalogue)
    return file.getvalue()


def read(folder: Path) -> Catalog:
    """What translators wrote of a language."""
    with (folder / TRANSLATED).open("rb") as file:
        return read_po(file, locale=folder.name)


def update(root: Path = ROOT, *, new: str | None = None) -> None:
    """Write the catalogues anew.

    Args:
        root: The repository.
        new: A language to begin.
    """
    folder = root / CATALOGUES.relative_to(ROOT)
    template = collected(root)
    (folder / TEMPLATE).write_bytes(as_text(template))
    listed = json.dumps(browser_forms(root), ensure_ascii=False, indent=1)
    (folder / BROWSER).write_text(listed + "\n", encoding="utf-8")
    if new is not None:
        (folder / new).mkdir()
        empty = Catalog(
            locale=new, project="Glassformer", creation_date=_LONG_AGO, revision_date=_LONG_AGO, fuzzy=False
        )
        (folder / new / TRANSLATED).write_bytes(as_text(empty))
    for language in sorted(file.parent for file in folder.glob(f"*/{TRANSLATED}")):
        catalogue = read(language)
        catalogue.update(template, update_creation_date=False)
        for sentence in catalogue:
            sentence.locations.clear()  # they stand in the template; no file of the repository may pass 1 MB
        (language / TRANSLATED).write_bytes(as_text(catalogue))
        (language / COMPILED).write_bytes(compiled(catalogue))
        print(f"{language.name}: {missing(catalogue)} of {len(catalogue)} sentences have no translation yet")


def missing(catalogue: Catalog) -> int:
    """How many sentences of a language are not translated, or were before their English changed."""
    return sum(bool(one.id) and (one.fuzzy or not all(_forms(one.string))) for one in catalogue)


def _forms(string: str | tuple[str, ...] | list[str] | None) -> tuple[str, ...]:
    return (string or "",) if isinstance(string, str | None) else tuple(string)


def main(arguments: list[str]) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--new", metavar="LANGUAGE", help="begin a language, such as zh")
    update(new=parser.parse_args(arguments).new)


if __name__ == "__main__":
    main(sys.argv[1:])
