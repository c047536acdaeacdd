"""Catalogues hold the sentences of the code as it is, and translations that are whole."""

import io
import json

import pytest
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po

from tests.bare_sentences import placeholders
from tools import catalogues
from tools.catalogues import CATALOGUES, COMPILED, browser_forms, collected, compiled, read
from transformer.i18n import languages

STALE = "run `make words` and commit what it writes"


def forms_of(text):
    return [text] if isinstance(text, str) else list(text or [""])


def complaints(written, template):
    """What is wrong with the catalogue of a language, held against the sentences of the code."""
    ours = {(one.id, one.context) for one in template if one.id}
    theirs = {(one.id, one.context) for one in written if one.id}
    found = [f"not in the catalogue: {id!r}" for id, _ in ours - theirs]
    found += [f"not in the code: {id!r}" for id, _ in theirs - ours]
    for one in written:
        if not one.id:
            continue
        asked = {name for form in forms_of(one.id) for name in placeholders(form)}
        if one.fuzzy or not all(forms_of(one.string)):
            found.append(f"not translated: {one.id!r}")
        for form in filter(None, forms_of(one.string)):
            named = placeholders(form)
            if named - asked or (asked - {"n"}) - named:
                found.append(f"names other values: {form!r}")
    return found


def test_the_template_every_language_and_the_list_for_scripts_are_those_of_the_code():
    template = collected()
    with (CATALOGUES / catalogues.TEMPLATE).open("rb") as file:
        written = read_po(file)
    fresh = read_po(io.BytesIO(catalogues.as_text(template)))
    assert [(m.id, m.context, m.locations) for m in written] == [(m.id, m.context, m.locations) for m in fresh], STALE
    assert json.loads((CATALOGUES / catalogues.BROWSER).read_text(encoding="utf-8")) == browser_forms(), STALE
    for language in languages()[1:]:
        written = read(CATALOGUES / language)
        assert not (wrong := complaints(written, template)), "\n".join(wrong)
        assert (CATALOGUES / language / COMPILED).read_bytes() == compiled(written), STALE


@pytest.fixture
def small(tmp_path):
    """A repository with twelve sentences."""
    (tmp_path / "glassformer" / "charts").mkdir(parents=True)
    (tmp_path / "glassformer" / "charts" / "a.py").write_text(
        '# For translators: what a step reads\nsay("Step {n} of {all}", n=1, all=2)\n'
        'say_n("{n} token", "{n} tokens", n)\nsay("Key", about="attention")\nsay("One " "sentence.")\n'
        'QueryError("No step {n}", n=1)\nQueryError(said)\nConfigError("n_heads", "is missing")\n'
    )
    (tmp_path / "glassformer" / "components").mkdir(parents=True)
    (tmp_path / "glassformer" / "a.toml").write_text(
        '[sentences]\nname = { about = "glossary" }\ncode = { note = "code" }\n'
        '[[rows]]\nname = "Mask"\ncode = "mask = 0"\nseen = "step"\n'
    )
    (tmp_path / "glassformer" / "components" / "a.js").write_text(
        'import { say } from "./words.js";\nsay("Save {name}", { name });\n'
        'const a = sayN("{n} row", "{n} rows", n);\n'
        'sayNodes("Shown: {what}", { what: box });\nsay(title);\n'
        'const b = `${say("Whole.")} ${a}`;\n'
    )
    (tmp_path / "transformer" / "i18n" / "catalogues").mkdir(parents=True)
    return tmp_path


def test_sentences_of_both_languages_are_collected(small):
    found = {(one.id, one.context): one for one in collected(small) if one.id}
    assert list(found) == [
        ("Step {n} of {all}", None),
        (("{n} token", "{n} tokens"), None),
        ("Key", "attention"),
        ("One sentence.", None),
        ("No step {n}", None),
        ("is missing", None),
        ("Mask", "glossary"),
        ("mask = 0", None),
        ("Save {name}", None),
        (("{n} row", "{n} rows"), None),
        ("Shown: {what}", None),
        ("Whole.", None),
    ]
    assert found["Step {n} of {all}", None].auto_comments == ["what a step reads"]
    assert found["mask = 0", None].auto_comments == ["code"]
    assert browser_forms(small) == [["Save {name}"], ["Shown: {what}"], ["Whole."], ["{n} row", "{n} rows"]]


def test_a_language_is_begun_translated_and_compiled_and_english_that_changed_turns_fuzzy(small):
    catalogues.update(small, new="zh")
    folder = small / "transformer" / "i18n" / "catalogues" / "zh"
    begun = read(folder)
    assert catalogues.missing(begun) == 12
    for one in begun:
        if one.id:
            one.string = (one.id[1],) if isinstance(one.id, tuple) else one.id
    (folder / catalogues.TRANSLATED).write_bytes(catalogues.as_text(begun))
    catalogues.update(small)
    written = read(folder)
    assert complaints(written, collected(small)) == []
    assert (folder / COMPILED).read_bytes() == compiled(written)
    file = small / "glassformer" / "charts" / "a.py"
    file.write_text(file.read_text().replace("One ", "Another "))
    catalogues.update(small)
    assert complaints(read(folder), collected(small)) == ["not translated: 'Another sentence.'"]


def test_a_translation_that_is_not_whole_is_found():
    template, written = Catalog(), Catalog(locale="zh")
    wrong = {"A {n}": "", "B {what}": "步", ("{n} token", "{n} tokens"): ("",), "Gone": "没有"}
    for id, string in wrong.items():
        written.add(id, string)
        if id != "Gone":
            template.add(id)
    expected = ["not in the code: 'Gone'", "not translated: 'A {n}'", "names other values: '步'"]
    assert complaints(written, template) == [*expected, "not translated: ('{n} token', '{n} tokens')"]
