"""A run in which every text that a saved file has is hostile: its sentence, its pieces, its model's card and name."""

from copy import copy
from dataclasses import fields, replace
from html.parser import HTMLParser

from glassformer.extensions.saving.saved_run import SavedRunRequest
from glassformer.runs.open_run import stepper_run
from glassformer.runs.step_frames import RunRef

TEXTS = (
    "</script><script>alert(1)</script>", "</SCRIPT >", "<!--", "-->", "<!--<script>", "]]>", "<![CDATA[", "<?php",
    "<img src=x onerror=alert(1)>", "<svg/onload=alert(1)>", "<iframe srcdoc='<script>alert(1)</script>'>",
    "<a href='javascript:alert(1)'>a</a>", "<b><i><u>", "<style>*{display:none}</style>", "<base href=//x>",
    "<meta http-equiv=refresh content=0>", "<form action=x><button>", "</title></body></html>", "<template>",
    "javascript:alert(1)", "data:text/html,<script>alert(1)</script>", "&lt;b&gt;", "&#60;b&#62;", "&amp;amp;",
    ">RUN<", ">SCRIPT<>PLOTLY<", "{n}", "{model}: {source}", "%{x}%{customdata[0]}", "${alert(1)}", "\u2028\u2029",
    "\u202e\u2066\u200f", "\ud800", "a\udc00b", "\x00\x07\x1b[31m", "'\"`;--", "a{}*{color:red}/*", "\\u003cb\\u003e",
    "👩‍👩‍👧‍👦🏴\U000e0067\U000e007f", "long " * 700,
)  # fmt: skip


def hostile(run, page, *texts):
    """The run, on a page, with these texts for its own, as what a file is made of, and the run itself."""
    trace, card = run.trace, run.checkpoint.card
    n_source, n_target = len(trace.src_tokens), len(trace.tgt_tokens)
    in_turn = [texts[place % len(texts)] for place in range(n_source + n_target)]
    pieces = {"src_tokens": tuple(in_turn[:n_source]), "tgt_tokens": tuple(in_turn[n_source:]),
              "texts": tuple(in_turn[n_source:])}  # fmt: skip
    query = replace(trace.query, source="".join(texts)[:4000])
    said = {one.name: texts[place % len(texts)] for place, one in enumerate(fields(card)) if one.type in ("str", str)}
    tokenizers = [copy(one) for one in (run.checkpoint.src_tokenizer, run.checkpoint.tgt_tokenizer)]
    for one in tokenizers:
        one.pieces = tuple(texts[place % len(texts)] for place in range(one.size))
    changed = replace(trace, query=query, vocabulary=tokenizers[1].pieces, **pieces)
    parts = dict(zip(("src_tokenizer", "tgt_tokenizer"), tokenizers, strict=True))
    checkpoint = replace(run.checkpoint, name=texts[0], card=replace(card, said={}, **said), **parts)
    there = replace(run, checkpoint=checkpoint, visible=replace(run.visible, trace=changed))
    again = _There(*(getattr(RunRef.of(there), one.name) for one in fields(RunRef)))
    object.__setattr__(again, "there", there)
    return SavedRunRequest(
        again, page, stepper_run(there.visible, checkpoint, "run"), "http://localhost/step?src=a"
    ), there


class Elements(HTMLParser):
    """What stands in some HTML: each element with its attributes, all other marks, and the texts between."""

    def __init__(self, html):
        super().__init__()
        self.found, self.marks, self.between = [], [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.between.append(data)

    def _mark(self, data):
        self.marks.append(data)

    handle_endtag = handle_decl = handle_comment = _mark

    def only(self, tag):
        [attributes] = [attributes for name, attributes in self.found if name == tag]
        return attributes


class _There(RunRef):
    """A run that is had again as it is: no model writes such texts."""

    def run(self):
        return self.there
