"""Every sentence that people read goes through `i18n.say`, in folders that are `CONVERTED`; and can be translated.

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
    "glassformer/extensions/corpus/library/conditions.py",
    "glassformer/extensions/corpus/library/joint_space.py",
    "glassformer/extensions/corpus/library/paired.py",
    "glassformer/extensions/corpus/library/queries.py",
    "glassformer/extensions/corpus/library/scores.py",
    "glassformer/components/assets.py",
    "glassformer/state/view.py",
    "glassformer/components/streamlit_page.py",
    "glassformer/shared/page_style.py",
    "glassformer/start/diagram.py",
    "glassformer/extensions/maps/source.py",
    "glassformer/extensions/corpus/page/corpus_panels.py",
    "glassformer/extensions/classroom/lessons/panel.py",
    "glassformer/extensions/rooms/page/room_view.py",
    "glassformer/extensions/replicas/store_redis.py",
    "glassformer/server/streamlit_private.py",
)
SPEAKING = {"app", "main", "pages", "glassformer", "transformer"}


def converted(source):
    path = source.path.as_posix()
    return path.startswith(CONVERTED) and path not in CODE


def is_i18n(source):
    return source.path.as_posix().startswith("transformer/i18n/")


def code(text, path="glassformer/page.py"):
    return Source(Path(path), text)


@pytest.mark.parametrize("rule", [bare, plural_by_hand])
def test_what_is_converted_says_every_sentence(rule):
    found = [line for source in sources(ROOT) if converted(source) for line in rule(source)]
    assert not found, "\n".join(found)


def test_every_sentence_can_be_translated():
    found = [
        line for source in sources(ROOT) if source.part in SPEAKING for line in ill_said(source) if not is_i18n(source)
    ]
    assert not found, "\n".join(found)


def test_every_sentence_of_data_is_whole_and_names_no_value():
    said = [text for file in sorted(ROOT.glob(TABLES)) for text, _, _ in said_in_table(file.read_text("utf-8"))]
    assert len(said) > 300
    assert [text for text in said if text != text.strip() or placeholders(text)] == []


def test_every_class_of_errors_that_says_its_message_is_known():
    classes = [node for source in sources(ROOT) for node in ast.walk(source.tree) if isinstance(node, ast.ClassDef)]
    saying = {node.name for node in classes if {ast.unparse(base) for base in node.bases} & (ERRORS | {"SaidError"})}
    assert saying == ERRORS


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


def test_what_is_converted_is_there():
    paths = [source.path.as_posix() for source in sources(ROOT)]
    assert all(any(path.startswith(name) for path in paths) for name in CONVERTED)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('say(f"Step {n}")', "no literal"),
        ("say(title)", "no literal"),
        ('say("Step " + name)', "no literal"),
        ("say()", "no literal"),
        ('say("Step", about=name)', "no literal"),
        ('say_n("piece", n)', "no literal"),
        ('say("Step {n}")', "names ['n'], the call []"),
        ('say("Step", n=1)', "names [], the call ['n']"),
        ('say_n("{n} piece of {whole}", "{n} pieces", n)', "names ['n', 'whole']"),
        ('say("Step {n}", **values)', "name each value"),
        ('QueryError(f"{n} pieces")', "no literal"),
        ('QueryError("Step " + name)', "no literal"),
        ('QueryError("One step" if one else "All steps")', "no literal"),
        ("QueryError(template, n=1)", "no literal"),
        ('QueryError("Step {n}")', "names ['n'], the call []"),
        ('ConfigError(name, "found {n}", m=1)', "names ['n'], the call ['m']"),
        ('ConfigError("n_heads")', "no literal"),
        ('say("Step {}", n=1)', "names ['']"),
        ('say("Step {n.real}", n=1)', "names"),
        ('say("Step {n} ", n=1)', "with a space"),
        ('say(" and more")', "with a space"),
        ('joined(", and ", parts)', "glues"),
        ("joined(mark, parts)", "no literal"),
    ],
)
def test_what_cannot_be_translated_is_found(text, expected):
    assert expected in "\n".join(ill_said(code(text)))


@pytest.mark.parametrize(
    "text",
    [
        'say("Step {n} of {all:,}", n=1, all=2)',
        'say("One " "sentence.")',
        'say("Key", about="attention")',
        'say_n("{n} piece", "{n} pieces", n)',
        'say_n("One piece of {whole}", "{n:,} pieces of {whole}", n, whole=w)',
        'say("Braces {{a}}")',
        'joined(" · ", parts)',
        'joined("<br>", parts)',
        'QueryError("Step {n}", n=1)',
        'QueryError(say_n("{n} piece", "{n} pieces", n))',
        "QueryError(MISSING[name])",
        'ConfigError(f"{a}.{b}", "is {found}", found=1)',
    ],
)
def test_what_can_be_translated_passes(text):
    assert list(ill_said(code(text))) == []


@pytest.mark.parametrize(
    "text", ['"piece" + "s" * (n > 1)', "f\"piece{'s' if n > 1 else ''}\"", '"" if n == 1 else "es"']
)
def test_a_plural_by_hand_is_found(text):
    assert len(list(plural_by_hand(code(text)))) == 1


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("glassformer/page.py", 'st.caption("Saved")'),
        ("glassformer/page.py", 'st.caption(f"Step {n}")'),
        ("glassformer/page.py", 'left.caption("All is saved")'),
        ("glassformer/page.py", 'st.button("Go", help=say("Go there"))'),
        ("glassformer/page.py", 'st.button(say("Go"), help="There")'),
        ("glassformer/page.py", 'st.sidebar.caption("Saved")'),
        ("glassformer/page.py", 'drawing.chart(figure, key="k", alt="Picture", how_to_read=say("Read"))'),
        ("glassformer/page.py", 'drawing.notes(["Saved"])'),
        ("glassformer/page.py", 'NAMES = {"a": "All heads"}'),
        ("glassformer/page.py", 'charts.heatmap_spec(w, title="Layer")'),
        ("glassformer/page.py", 'st.caption(say("Step {what}", what="of the way"))'),
        ("glassformer/page.py", 'x = pd.DataFrame(rows, columns=["Name", "Count"])'),
        ("pages/explore/step.py", 'st.title("Step")'),
        ("main.py", 'st.Page("a.py", title="Attention")'),
        ("glassformer/charts/bars.py", 'TITLE = "Next pieces"'),
        ("glassformer/charts/bars.py", 'layout = {"title": {"text": "Weight"}}'),
        ("glassformer/charts/bars.py", 'trace = {"hovertemplate": "weight %{y}<extra></extra>"}'),
        ("glassformer/charts/bars.py", 'def f(x, *, key_axis: str = "Key"):\n    pass'),
        ("glassformer/charts/bars.py", 'def f(x, title="Bars"):\n    pass'),
        ("transformer/text/tokenizer.py", 'raise TokenizerError(made("so many pieces", n))'),
        ("transformer/text/tokenizer.py", 'raise TokenizerError("{n} {what}", n=n, what="pieces are too many")'),
        ("glassformer/extensions/training/commands/train.py", 'raise DataError(" ".join(["Nothing", "to score"]))'),
        ("transformer/runs/source.py", 'notes += ["The output was cut."]'),
        ("transformer/runs/source.py", 'return (f"This model has never seen {listed}.",)'),
        ("transformer/runs/source.py", 'CUT = "Some values are not finite."'),
    ],
)
def test_text_that_bypasses_say_is_found(path, text):
    assert len(list(bare(code(text, path)))) >= 1


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("glassformer/page.py", 'st.caption(say("All is saved"))'),
        ("glassformer/page.py", 'st.button(say("Go"), key="go", icon=":material/add:", type="primary", on_click=go)'),
        ("glassformer/page.py", 'st.caption(f"{a} → {b}")'),
        ("glassformer/page.py", '"""Two words of a docstring."""\ndef f():\n    """Another one here."""'),
        ("glassformer/page.py", 'st.session_state.get("source")'),
        ("glassformer/page.py", '_LOG.info("%d runs so far", n)'),
        ("glassformer/page.py", 'st.container(key="examples", horizontal_alignment="left")'),
        ("glassformer/page.py", 'st.switch_page("pages/explore/step.py")'),
        ("glassformer/page.py", 'if kind == "two words": pass'),
        ("glassformer/charts/bars.py", 'raise ValueError("two of them: give one")'),
        ("glassformer/charts/bars.py", 'line = {"yref": "y domain", "mode": "lines+markers"}'),
        ("glassformer/charts/bars.py", 'def f(x, *, colour: Colour = "source"):\n    pass'),
        ("glassformer/charts/bars.py", 'trace = {"hovertemplate": "%{hovertext}<extra></extra>", "name": "BLEU"}'),
        ("transformer/text/tokenizer.py", 'raise TokenizerError("{n} pieces are too many", n=n)'),
        ("transformer/text/tokenizer.py", 'raise ConfigError("n_heads", "too many")'),
        ("glassformer/extensions/training/commands/train.py", 'print("Two words.")'),
        (
            "glassformer/extensions/training/commands/train.py",
            'parser.add_argument("--dev", help="held-out pairs to score")',
        ),
        ("glassformer/extensions/training/library/loop.py", 'tqdm(range(3), unit="step")'),
        ("transformer/runs/step.py", 'StopReason = Literal["end of sentence"]'),
        ("transformer/analysis/rollout.py", 'raise ValueError("There is no layer.")'),
    ],
)
def test_what_nobody_reads_or_is_said_passes(path, text):
    assert list(bare(code(text, path))) == []
