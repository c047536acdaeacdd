"""Every text that a page shows, read out of what Streamlit would send to a browser."""

import json

from google.protobuf.message import Message

from tests.pseudo_language import texts_of_figure
from transformer.i18n import languages, name_of

# Fields of Streamlit's messages that people read.
_SEEN = {"body", "caption", "captions", "header", "help", "label", "options", "placeholder", "text", "title", "name"}
_SEEN |= {"page_name", "section_header", "delta", "content", "content_icons", "page_title"}
_SETTINGS = {"id", "form_id", "key", "icon", "css", "js", "html_content", "mixed_arrow_data"}
# Fields of our components' payloads that nobody reads: names, files, and the data of a run.
_NOT_READ = {"figure", "name", "file", "table", "script", "lang", "spoken", "words", "run", "run_id", "key", "kind"}
_NOT_READ |= {"addresses", "follows", "moves", "side", "colours", "key_side", "open", "query_side", "sentence"}
_NOT_READ |= {"weights", "address", "also", "among", "apart", "chosen", "id", "look", "rows"}


def texts_of_page(test):
    """All texts of a page, in its order: labels, bodies, help, options, tables, charts with all that they say."""
    own_names = set(map(name_of, languages()))  # a language is called in itself
    return [text for text in _of_node(test._tree) if text.strip() and text not in own_names]


def _of_node(node):
    proto, kind = getattr(node, "proto", None), getattr(node, "type", "")
    if kind == "bidi_component":
        payload = json.loads(proto.json)[0]
        yield from texts_of_figure(json.loads(payload["figure"])) if "figure" in payload else ()
        yield from _of_payload(payload)
    elif kind in ("arrow_data_frame", "arrow_table", "dataframe", "table"):
        yield from _of_table(node)
    elif isinstance(proto, Message) and kind != "html":  # which holds rules of ours
        yield from _of_message(proto)
    for child in getattr(node, "children", {}).values():
        yield from _of_node(child)


def _of_message(message):
    for field, value in message.ListFields():
        many = [value] if isinstance(value, str | bytes | Message) or not hasattr(value, "__len__") else list(value)
        for part in many:
            if isinstance(part, Message):
                yield from _of_message(part)
            elif isinstance(part, str) and field.name in _SEEN - _SETTINGS:
                yield part


def _of_table(node):
    table = node.value
    configured = json.loads(getattr(node.proto, "columns", "") or "{}")
    yield from (str(name) for name in table.columns if not (configured.get(str(name)) or {}).get("label"))
    if table.index.dtype.kind not in "iu":
        yield from map(str, table.index)
    yield from (cell for name in table.columns for cell in table[name] if isinstance(cell, str))
    for column in filter(None, configured.values()):
        yield from (column[part] for part in ("label", "help") if column.get(part))


def _of_payload(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        read = value if isinstance(value, list) else [part for name, part in value.items() if name not in _NOT_READ]
        for part in read:
            yield from _of_payload(part)
