"""Finds text that people read and that bypasses `i18n.say`, and sentences that a translator could not handle.

Source is read with `ast` only. What it does not see: a text that reaches the screen by way of a variable; the test
that walks pages in the pseudo-language finds those.
"""

import ast
import re
import string

from tools.catalogues import ERRORS, SAYING

_TWO_WORDS = re.compile(r"[^\W\d_]{2,},? [^\W\d_]{2,}")
_WORD = re.compile(r"[^\W\d_]{2,}")
_FIELD = re.compile(r"[a-z_][a-z0-9_]*$")
# Named arguments, parameters and keys whose text is read, even if it is a single word.
_READ = re.compile(
    r"(title|label|help|alt|caption|how_to_read|placeholder|body|note|reason|value_name|unit|text|subtitle|name"
    r"|hovertext|hovertemplate|columns|\w+_axis|\w+_title|\w+_reason|kept_name|how_chosen)$"
)
# Named arguments of Streamlit's whose text nobody reads.
_SETTINGS = re.compile(
    r"(key|icon|type|format|width|height|gap|border|layout|file_name|mime|url_path|visibility|on_\w+|(\w+_)?alignment"
    r"|selection_mode|page_icon|language|persist_state|label_visibility|anchor|horizontal\w*|vertical\w*|step|color"
    r"|delta_\w+|initial_sidebar_state|position|input_type|autocomplete|args)$"
)
_DRAWS = re.compile(r"(st|drawing)(\.|$)")
_NO_TEXT = re.compile(r"st\.(session_state|query_params|html|switch_page|components|cache\w+|Page$|context|get_option)")
_SAID_ELSEWHERE = ast.Name | ast.Attribute | ast.Subscript | ast.Call  # what an error may be given as a sentence
_NOTATION = {"BLEU", "chrF", "PE", "glassformer", "pyarrow"}
# Values that are stored and compared; who shows one says a sentence for it.
_VALUES = {"end of sentence", "length limit", "no decoder", "alignment error rate", "Joey NMT"}
# Read in a terminal, a log or a report, which are English; their errors are sentences all the same.
_TERMINAL = re.compile(
    r"(transformer|glassformer)/__main__\.py|glassformer/__init__\.py|transformer/commands/"
    r"|glassformer/extensions/(\w+/(__init__\.py|\w*command\w*(\.py|/)|library/survey\.py)|(training/library|replicas)/"
    r"|drafts/ctranslate2_draft\.py)"
)
_FOR_DEVELOPERS = ("transformer/model/sites.py",)  # tables that no page shows
_PLACE = re.compile(r"(top|middle|bottom) (left|center|right)$")  # as Plotly names them
_OPTION = re.compile(r"--[a-z-]+$")  # of a command line, which is the same in every language


# -------------------------------------------------------------------------------- how a sentence is said


def ill_said(source):
    """Calls of `say`, `say_n`, `joined` and errors that a catalogue cannot hold."""
    for call in (node for node in source.nodes if isinstance(node, ast.Call)):
        name = _name(call.func)
        found = _ill_said(call, name) if name in SAYING else _ill_joined(call) if name == "joined" else ()
        yield from (f"{source.path}:{call.lineno} {line}" for line in found)


def _ill_said(call, name):
    templates = call.args[SAYING[name]]
    n_templates = 2 if name == "say_n" or (name in ERRORS and len(templates) == 2) else 1
    if name in ERRORS and not call.keywords and len(templates) == 1 and isinstance(templates[0], _SAID_ELSEWHERE):
        return
    about = [keyword.value for keyword in call.keywords if keyword.arg == "about"]
    if len(templates) < n_templates or None in map(_text, [*templates, *about]):
        yield "the template is no literal: extraction does not see it"
        return
    if any(keyword.arg is None for keyword in call.keywords):
        yield "name each value: translators see the names"
        return
    texts = list(map(_text, templates))
    if any(text != text.strip() for text in texts):
        yield "a template begins or ends with a space: it is a part of a sentence"
    given = {keyword.arg for keyword in call.keywords} - {"about"}
    asked = {field for text in texts for field in placeholders(text)}
    if asked - ({"n"} if n_templates == 2 else set()) != given:
        yield f"the template names {sorted(asked)}, the call {sorted(given)}"
    if any(not _FIELD.match(field) for field in asked):
        yield f"placeholders are plain names, not {sorted(asked)}"


def _ill_joined(call):
    separator = _text(call.args[0]) if call.args else None
    if separator is None:
        yield "the separator is no literal"
    elif re.search(r"[^\W\d_]", re.sub(r"<\w+>", "", separator)):
        yield "a separator with words in it glues a sentence together: say it whole"


def placeholders(template):
    """The names of a template's values."""
    return {field for _, field, _, _ in string.Formatter().parse(template) if field is not None}


def plural_by_hand(source):
    """A letter that is added or left out instead of `say_n`."""
    for node in source.nodes:
        times = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
        chosen = isinstance(node, ast.IfExp) and {_text(node.body), _text(node.orelse)}
        if (times and "s" in (_text(node.left), _text(node.right))) or chosen in ({"s", ""}, {"es", ""}):
            yield f"{source.path}:{node.lineno} a plural made by hand: use say_n"


# -------------------------------------------------------------------------------- text that bypasses it


def bare(source):
    """Texts for people that do not go through `say`."""
    path = source.path.as_posix()
    if path in _FOR_DEVELOPERS:
        return
    parents = {child: node for node in source.nodes for child in ast.iter_child_nodes(node)}
    for node in source.nodes:
        if not (isinstance(node, ast.JoinedStr) or _text(node) is not None):
            continue
        above = list(_above(node, parents))
        if isinstance(above[0][0], ast.JoinedStr) or _is_aside(node, above):
            continue
        if _TERMINAL.match(path) and not any(_is_ours(parent) for parent, _ in above):
            continue
        shown = _shown(node)
        if (_text(node) or "").lstrip().startswith("<style>"):
            continue
        named = set(_WORD.findall(shown)) - _NOTATION and _is_read(above)
        told = _TWO_WORDS.search(shown) and not _PLACE.match(shown)
        if (named or told) and shown not in _VALUES and not _OPTION.match(shown):
            yield f"{source.path}:{node.lineno} does not go through say: {shown[:60]!r}"


def _above(node, parents):
    """Each node that a node is in, from its parent up, with the child that it is in."""
    while (parent := parents.get(node)) is not None:
        yield parent, node
        node = parent


def _is_aside(node, above):
    """Whether a text is said, a docstring, of a type, or only for developers."""
    for parent, child in above:
        if isinstance(parent, ast.Raise):
            return not _is_ours(parent)
        if isinstance(parent, ast.Call):
            name, whole = _name(parent.func), ast.unparse(parent.func)
            if name in {*SAYING} - ERRORS:
                return child in parent.args or (isinstance(child, ast.keyword) and child.arg == "about")
            if name == "getLogger" or whole.startswith(("_LOG.", "logging.", "re.")):
                return True
            if name in ERRORS and node in parent.args:
                return True  # a template
        docstring = isinstance(parent, ast.Expr) and isinstance(child, ast.Constant)
        key = isinstance(parent, ast.Subscript) and child is parent.slice  # or a Literal type
        of_type = isinstance(parent, ast.arg | ast.AnnAssign) and child is parent.annotation
        if docstring or key or of_type or isinstance(parent, ast.Compare):
            return True
    return False


def _is_ours(node):
    return isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and _name(node.exc.func) in ERRORS


def _is_read(above):
    """Whether a text stands where people read it, even if it is a single word."""
    for place, (parent, child) in enumerate(above):
        if isinstance(parent, ast.stmt | ast.Subscript):
            return False
        if isinstance(parent, ast.keyword) and parent.arg:
            call = above[place + 1][0]
            drawn = isinstance(call, ast.Call) and _DRAWS.match(ast.unparse(call.func))
            return not _SETTINGS.match(parent.arg) if drawn else _READ.match(parent.arg)
        if isinstance(parent, ast.Dict):
            key = parent.keys[parent.values.index(child)] if child in parent.values else None
            return key is not None and _READ.match(_text(key) or "")
        if isinstance(parent, ast.Call) and child in parent.args:
            called = ast.unparse(parent.func)
            drawn = _DRAWS.match(called) and not _NO_TEXT.match(called) and not called.endswith(".container")
            return called in ERRORS or drawn
        if isinstance(parent, ast.arguments):
            pairs = zip(reversed(parent.args), reversed(parent.defaults), strict=False)
            named = [*pairs, *zip(parent.kwonlyargs, parent.kw_defaults, strict=True)]
            return any(default is child and _READ.match(one.arg) for one, default in named)
    return False


def _name(function):
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _text(node):
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _shown(node):
    """The words of a literal; what an f-string computes counts as a mark, and Plotly's fields as nothing."""
    whole = "".join(_text(part) or "{}" for part in node.values) if isinstance(node, ast.JoinedStr) else _text(node)
    return re.sub(r"%\{[^{}]*\}|<[^<>]*>|:material/\w+:", "", whole)
