"""Every sentence that people read goes through `i18n.say`, and can be translated.

Each rule is also shown code that breaks it, as a check that cannot fail checks nothing.
"""

import ast
from pathlib import Path

import pytest

from tests.bare_sentences import bare, ill_said, placeholders, plural_by_hand
from tests.source_code import ROOT, Source, imports, sources
from tools.catalogues import ERRORS, TABLES, said_in_table

# Files and folders whose sentences all go through `say`.
CONVERTED = ("main.py", "pages/", "glassformer/", "transformer/")
# Hold code for the browser, for DuckDB or Arrow, or for readers to copy, as text, names of Streamlit's, or lines
# of the log, and no bare word for people.
CODE = (
    "glassformer/components/custom_component.py",
    "glassformer/extensions/classroom/panel.py",
    "glassformer/extensions/corpus/library/joint_space.py",
    "glassformer/extensions/corpus/library/queries.py",
    "glassformer/extensions/saving/text_pictures.py",
    "glassformer/extensions/corpus/library/scores.py",
    "glassformer/extensions/corpus/open_corpus_run.py",
    "glassformer/extensions/maps/source.py",
    "glassformer/extensions/replicas/store_redis.py",
    "glassformer/extensions/rooms/room_view.py",
    "glassformer/server/streamlit_private.py",
    "glassformer/shared/page_style.py",
    "glassformer/start/diagram.py",
    "glassformer/state/view.py",
)
MESSAGES = {"error", "warning", "info"}  # that Streamlit draws
SPEAKING = {"app", "main", "pages", "glassformer", "transformer"}


def converted(source):
    path = source.path.as_posix()
    return path.startswith(CONVERTED) and path not in CODE


def is_i18n(source):
    return source.path.as_posix().startswith("transformer/i18n/")


def code(text, path="glassformer/page.py"):
    return Source(Path(path), text)


def test_every_sentence_is_said_and_can_be_translated():
    assert all(any(str(source.path).startswith(name) for source in sources(ROOT)) for name in CONVERTED)
    said = [source for source in sources(ROOT) if converted(source)]
    found = [line for source in said for rule in (bare, plural_by_hand) for line in rule(source)]
    speaking = [source for source in sources(ROOT) if source.part in SPEAKING and not is_i18n(source)]
    found += [line for source in speaking for line in ill_said(source)]
    assert not found, "\n".join(found)


def test_every_sentence_of_data_is_whole_and_names_no_value():
    said = [text for file in sorted(ROOT.glob(TABLES)) for text, _, _ in said_in_table(file.read_text("utf-8"))]
    assert len(said) > 300
    assert [text for text in said if text != text.strip() or placeholders(text)] == []


def test_every_class_of_errors_that_says_its_message_is_known():
    speaking = [source for source in sources(ROOT) if source.part in SPEAKING]
    classes = [node for source in speaking for node in source.nodes if isinstance(node, ast.ClassDef)]
    bases = ERRORS | {"SentenceError"}
    assert {node.name for node in classes if {ast.unparse(base) for base in node.bases} & bases} == ERRORS


def test_the_library_leaves_the_language_to_whoever_draws():
    """A trace or a checkpoint is made once, in a thread, and read by visitors of every language."""
    early = {f"transformer.i18n.{name}" for name in ("said", "said_throughout", "catalogue", "negotiated")}
    found = [
        f"{source.path}:{one.line} imports {one.name}"
        for source in sources(ROOT)
        if source.part == "transformer" and not is_i18n(source)
        for one in imports(source)
        if one.name in early or one.name.startswith(("transformer.i18n.catalogue.", "transformer.i18n.sentence.said"))
    ]
    assert not found, "\n".join(found)


APART = {
    "glassformer/charts/bars.py": [
        'layout = {"title": {"text": "Weight"}}',
        'trace = {"hovertemplate": "weight %{y}<extra></extra>"}',
        'def f(x, *, key_axis: str = "Key"):\n    pass',
    ],
    "transformer/text/tokenizer.py": ['raise TokenizerError("{n} {what}", n=n, what="tokens are too many")'],
    "glassformer/extensions/training/train_command.py": ['raise DataError(" ".join(["Nothing", "to score"]))'],
    "transformer/runs/inputs.py": ['return (f"This model has never seen {listed}.",)'],
}
BROKEN = [
    *((ill_said, *one) for one in (
        ('say(f"Step {n}")', "no literal"),
        ("say()", "no literal"),
        ('say("Step", about=name)', "no literal"),
        ('say_n("token", n)', "no literal"),
        ('say("Step {n}")', "names ['n'], the call []"),
        ('say_n("{n} token of {whole}", "{n} tokens", n)', "names ['n', 'whole']"),
        ('say("Step {n}", **values)', "name each value"),
        ('QueryError("One step" if one else "All steps")', "no literal"),
        ('ConfigError(name, "found {n}", m=1)', "names ['n'], the call ['m']"),
        ('say(" and more")', "with a space"),
        ('joined(", and ", parts)', "glues"),
    )),
    *((plural_by_hand, text, "use say_n") for text in (
        '"token" + "s" * (n > 1)', "f\"token{'s' if n > 1 else ''}\"", '"" if n == 1 else "es"')),
    *((bare, text, "does not go through say") for text in (
        'st.caption(f"Step {n}")',
        'st.button(say("Go"), help="There")',
        'drawing.chart(figure, key="k", alt="Picture", how_to_read=say("Read"))',
        'NAMES = {"a": "All heads"}',
        'st.caption(say("Step {what}", what="of the way"))',
        'x = pd.DataFrame(rows, columns=["Name", "Count"])',
    )),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "text", "expected", "path"),
    [*((*one, "glassformer/page.py") for one in BROKEN)]
    + [(bare, text, "does not go through say", path) for path, texts in APART.items() for text in texts],
)
def test_what_bypasses_say_or_cannot_be_translated_is_found(rule, text, expected, path):
    assert expected in "\n".join(rule(code(text, path)))


def without_code(source):
    """Places that draw a message letter by letter, so that what it says of code has literal backticks."""
    for node in source.nodes:
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in MESSAGES and node.args:
            drawn = node.args[0]
            if isinstance(drawn, ast.Call) and ast.unparse(drawn.func).rpartition(".")[2] == "plain":
                yield f"{source.path}:{node.lineno} takes with_code"


def test_messages_draw_code_as_code():
    assert [place for source in sources(ROOT) if converted(source) for place in without_code(source)] == []
    assert list(without_code(code("st.error(drawing.plain(error.sentence))")))
