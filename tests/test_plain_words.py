"""Sentences are plain, and a thing has one word on every page; `docs/contributing/words.md` says which."""

import re
import tomllib
from functools import cache

from babel.messages.pofile import read_po

from glassformer.extensions.lessons.library.lesson_files import PLAN
from tools.catalogues import CATALOGUES, TEMPLATE, read

TICS = {
    r", so that (?!\w+ can\b|score)": "so",
    r"\b(encoder|decoder)s? alone\b": "encoder-only, decoder-only",
    r"(?<!here )\b(is|are|was|were) no (?!longer|more|better|different|smaller|larger|turn)\w": "not a, has no",
    r"\b(row|chart|line|bar|column|pair|nats|bits|vote) a (row|head|layer|token|step|token|line)\b(?!')": "per",
    r"\bhand(s|ed|ing)? in\b": "upload",
    r"\b(would|could|may) tell\b|\btells? apart\b|\btold apart\b": "give away, distinguish",
    r"\b[Ff]orget (it|them|the|my)\b": "delete",
    r"\b(is|are) others\b|\bis another one\b": "different",
    r"\b[Ww]hoever\b": "anyone who",
    r"\b(stand|stands|stood|standing) (in|before|behind|beside|at|on|there|here|first|alone)\b": "be",
    r"\bbehind (it|them|the source|the prompt|the output)\b": "after",
    r"\b[Pp]ress a\b|\b[Pp]oint at (?!which)": "click, hover over",
    r"\b(was|were) asked for\b": "requested",
    r"\bfor good\b|\bof no matter\b|\bhangs? on\b|\bhung on\b": "permanently, matter, depend on",
    r"\b(that|which) (is|are) looked at\b": "chosen",
    r"\bheads? of keys and values\b": "key-value head",
    r"\bmost (unlike|silent)\b": "least similar, weakest",
}  # fmt: skip
CHINESE_TICS = {
    r"已生成的译文": "已写出的输出",
    r"(?<!子)词嵌入|位置表(?!达)|(?<!\|)预测头|键和值的头": "嵌入, 位置编码表, 输出头, 键值头",
    r"书写|更可能|更不可能": "生成, 概率更高",
    r"度量": "指标",
    r"第 \d+, \d|[\u4e00-\u9fff，（] ?-\d": "、, −",
}


# Words that are not used, and what the glossary has for them. A token's number counts from 1 on every page; the p of a
# formula counts from 0, and is always called p.
INSTEAD = {
    rf"(?i)\b(?:{word})\b": instead
    for word, instead in {
        r"start (token|token|symbol)s?": "start mark",
        r"(end|eos) (token|token|symbol)s?": "end mark",
        r"sub-?words?|word-?pieces?": "piece",
        r"feed-forward layers?|MLP": "feed-forward network",
        r"hidden states?": "stream, or vector",
        r"(un)?embeddings? matri(x|ces)": "embedding table",
        r"untouched run": "unchanged run",
        r"(encoder-decoder|source) attention": "cross-attention",
        r"time ?steps?": "decoding step",
        r"gold (token|token)s?": "right token",
    }.items()
} | {r"(?i)\bposition \{": "token {n}, or p"}


def texts_in(value):
    """Every text of a lesson's data, in both languages."""
    if isinstance(value, dict) and isinstance(value.get("en"), str):
        yield value["en"], value.get("zh", "")
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts_in(part)


@cache
def lessons():
    files = sorted(PLAN.glob("*.toml"))
    return [(file.name, *texts) for file in files for texts in texts_in(tomllib.loads(file.read_text("utf-8")))]


@cache
def messages():
    """Each sentence of the code: that the template has them, `tests/tools/test_catalogues.py` sees."""
    with (CATALOGUES / TEMPLATE).open("rb") as file:
        return [(one.locations[0][0] if one.locations else "", one) for one in read_po(file)]


def forms(text):
    return [text] if isinstance(text, str) else text


def english():
    """Each English text that people read, with its place."""
    said = [(place, text) for place, message in messages() for text in forms(message.id)]
    return said + [(place, text) for place, text, _ in lessons()]


def found(tics, texts):
    """Each text with a tic, and what is written instead."""
    return [f"{place}: {text!r}: {tics[tic]}" for place, text in texts for tic in tics if re.search(tic, text)]


def test_english_is_plain_and_a_thing_has_one_word():
    assert not (tics := found(TICS, english())), "\n".join(tics)
    texts = [("", form) for _, one in messages() if one.context != "glossary" for form in forms(one.id)]
    assert not (words := found(INSTEAD, texts)), "\n".join(words)


def test_chinese_has_one_word_for_one_thing():
    """What the Chinese catalogue and the lessons say."""
    said = [("messages.po", form) for one in read(CATALOGUES / "zh") if one.id for form in forms(one.string)]
    texts = said + [(place, text) for place, _, text in lessons()]
    assert not (tics := found(CHINESE_TICS, texts)), "\n".join(tics)


def test_a_tic_is_found_and_plain_english_is_left_alone():
    tics = ("It is an encoder alone.", "It is no number.", "one row a head", "Whoever has it", "{n} nats a token")
    assert all(found(TICS, [("", text)]) for text in tics)
    assert all(found(INSTEAD, [("", text)]) for text in ("at position {place}", "Position {n} reads", "An MLP"))
    plain = ["There is no room.", "It is no longer here.", "so that you can see it", "a row of a head's map"]
    assert not found(TICS | INSTEAD, [("", text) for text in plain])


ABOUT = re.compile(r"\bshipped\b|\bhealthy\b|models tested|\b[Tt]rained (models?|matri|checkpoint)")


def test_no_sentence_about_shipped_or_healthy_models_has_a_number_that_was_typed():
    """But for what does not depend on a model: numbers of a formula, in the same sentence."""
    formula = {"It is about 1 in a newly initialised layer and at least {least:g} in the shipped checkpoints."}
    sentences = {part for _, text in english() for part in re.split(r"(?<=[.;:!?]) ", text)} - formula
    bare = {one: re.sub(r"\{[^{}]*\}|\d+-bit", "", one) for one in sentences}
    assert not [one for one, text in bare.items() if ABOUT.search(text) and re.search(r"\d", text)]
