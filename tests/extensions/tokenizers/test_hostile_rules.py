"""A stranger's rules of words take no more time and memory than they may, and cost no other text anything."""

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import models, pre_tokenizers

from glassformer.extensions.tokenizers import tokenizers_library
from glassformer.extensions.tokenizers.tokenizers_library import LibraryProcess, ProcessLimits
from glassformer.extensions.tokenizers.vocabulary import Way, _Finder, _Found, _of_word
from tests.extensions.refusing import refusal
from transformer.errors import TokenizerError

SMALL = ProcessLimits(memory=64 << 20, seconds=0.3, tokens=1_000, characters=2_000)


def replacing(*pairs, **more):
    return [{"type": "Replace", "pattern": {"String": old}, "content": new} | more for old, new in pairs]


TEN_FOLD = replacing(("zqzqzqzqzq", "zq" * 300), *[("zqzqzq", "zq" * 300)] * 5)
STARS = {"type": "Replace", "pattern": {"Regex": "((a|a)*)*$"}, "content": "b"}
MANY = {"type": "Split", "pattern": {"Regex": "^(a+)+$"}, "behavior": "Isolated", "invert": False}
BOUNDLESS = {
    "replacements one after the other": ({"normalizer": {"type": "Sequence", "normalizers": TEN_FOLD}}, "zq" * 20),
    "a normaliser that goes back again and again": ({"normalizer": STARS}, "a" * 28 + "!"),
    "a pattern of words that goes back again and again": ({"pre_tokenizer": MANY}, ("a" * 24 + "!") * 40),
}


def content(**parts):
    made = tokenizers.Tokenizer(models.WordLevel({"<unk>": 0, "a": 1, "zqzqzqzqzq": 2}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return json.dumps(json.loads(made.to_str()) | parts).encode()


def opened(limits=SMALL, **parts):
    process = LibraryProcess(content(**parts), limits)
    process.open()
    return process


@pytest.mark.parametrize("name", BOUNDLESS)
def test_an_endless_rule_ends_its_own_process_and_says_so(name):
    parts, text = BOUNDLESS[name]
    process = opened(**parts)
    began = time.monotonic()
    says = r"its rules need more than 0\.3 seconds or 64 MB|cannot use (it|this file)"
    refusal(lambda: process.encode(text, unknown=0), says, kind=TokenizerError)
    assert time.monotonic() - began < 30
    assert len(process.encode("a", unknown=0)[0]) == 1  # the next text is read


def test_a_decoder_is_held_to_the_same():
    steps = [{"type": "Fuse"}, *TEN_FOLD]
    process = opened(decoder={"type": "Sequence", "decoders": steps})
    assert process.decode([1]) == "a"
    refusal(lambda: process.decode([2] * 20), "its rules need more than", kind=TokenizerError)
    assert process.decode([1]) == "a"


def test_an_answer_is_short():
    process = opened(normalizer=replacing(("z", "a " * 300))[0])
    assert process.encode("zzz", unknown=0)[0] == [1] * 900
    with pytest.raises(TokenizerError, match=r"turn 4 characters into 1,200 tokens; the limit is 1,000 tokens"):
        process.encode("zzzz", unknown=0)
    process = opened(decoder=replacing(("a", "b" * 600))[0])
    with pytest.raises(TokenizerError, match=r"turn 4 tokens into .* characters; the limit is 2,000"):
        process.decode([1] * 4)
    process = opened(normalizer=replacing(("z" * 100, "b " * 300))[0])
    ids, unknown = process.encode("z" * 100, unknown=0)  # which do not repeat the text without end
    assert ids == [0] * 300
    assert sum(map(len, unknown.values())) <= SMALL.characters


def test_many_requests_have_not_many_times_the_seconds():
    process = opened(ProcessLimits(seconds=0.5, each=0.001), normalizer=replacing(("z", "a " * 200))[0])
    began = time.monotonic()
    refusal(lambda: again_and_again(process, "z" * 300), r"more than 0\.5 seconds", kind=TokenizerError)
    assert time.monotonic() - began < 30


def again_and_again(process, text):
    for _ in range(500):
        process.encode(text, unknown=0)


def test_a_process_that_somebody_ended_is_started_again_and_it_ends_with_its_tokenizer():
    process = opened()
    os.kill(process._process.pid, signal.SIGKILL)
    process._process.wait()
    assert process.encode("a", unknown=0) == ([1], {})
    made = tokenizers_library.LibraryTokenizer(content())
    child = made._library._process
    assert child.poll() is None
    del made
    assert child.returncode is not None


def test_the_process_can_do_little_else():
    process = opened()
    process.encode("a", unknown=0)  # what a text may take is less than what loading may
    limits = Path(f"/proc/{process._process.pid}/limits").read_text(encoding="ascii")
    space = int(re.search(r"Max address space\s+(\d+)", limits)[1])
    assert space < 2**30
    status = Path(f"/proc/{process._process.pid}/status").read_text(encoding="ascii")
    assert re.search(r"^NoNewPrivs:\s+1$", status, re.MULTILINE)
    assert re.search(r"^Seccomp:\s+2$", status, re.MULTILINE)


TEXTS = st.text("ab <\u3000", min_size=1, max_size=4)
WAYS = st.builds(Way, st.booleans(), st.booleans(), st.booleans())


def by_pattern(pieces, text):
    """The same by one regular expression with a branch for each piece, which is what it means."""
    longest = sorted(pieces, key=len, reverse=True)
    parts = [
        (r"(?:(?<!\s)\s+)?" if pieces[one].lstrip else "") + re.escape(one) + (r"\s*" if pieces[one].rstrip else "")
        for one in longest
    ]
    start = 0
    for found in re.finditer("|".join(f"({part})" for part in parts) or r"(?!)", text):
        name, (begin, end) = longest[found.lastindex - 1], found.span()
        if pieces[name].single_word and any(map(_of_word, (text[max(begin - 1, 0) : begin], text[end : end + 1]))):
            continue
        if begin > start:
            yield text[start:begin]
        yield _Found(name)
        start = end
    if start < len(text):
        yield text[start:]


@given(st.dictionaries(TEXTS, WAYS, max_size=5), st.text("ab <\u3000", max_size=14))
def test_added_pieces_are_found_as_by_a_pattern(pieces, text):
    finder = _Finder({one: (one, way) for one, way in pieces.items()})
    assert list(finder.cut(text)) == list(by_pattern(pieces, text))


def test_thousands_of_added_pieces_take_no_time():
    way = Way(lstrip=True, rstrip=True)
    alike = {f"{'a' * 14}{i:06}" for i in range(4_500)} | {"a" * n + "b" for n in range(1, 500)}
    finder = _Finder({one: (one, way) for one in alike})
    began = time.process_time()
    for text in ("a" * 4_000, " " * 4_000, " a" * 2_000):
        assert list(finder.cut(text)) == [text]
    assert time.process_time() - began < 10  # a pattern takes minutes
