"""Whatever somebody types is decoded, or one sentence explains why not."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from transformer import run
from transformer.errors import QueryError

SOURCE = "ba lo mi ta"
PAD, EOS = 0, 3


STRANGE = [
    "👩‍👩‍👧 🦊 שלום 我喜欢",
    "\u202eba lo\u202c b\u0301\u0302\u0303a",
    "ba\0lo\nmi\tta \ud800 \udfff",
    "<script>alert(1)</script> &amp;",
    "<s> </s> <pad> <unk>",
    "＝ＢＡ 𝓫𝓪 𝔩𝔬",
]
EMPTY = dict.fromkeys(("", "\n\t \u3000\u00a0"), r"The source is empty\. Type a sentence\.$")
EMPTY |= dict.fromkeys(("\u200b", "\x01\x02\ufeff", "▁▁"), "contains nothing that the model can read")


@pytest.mark.parametrize("source", EMPTY)
def test_a_source_of_nothing_visible_is_explained(checkpoint, source):
    with pytest.raises(QueryError, match=EMPTY[source]):
        run(checkpoint, checkpoint.query(source))


def with_examples(test):
    """Every strange source is an example."""
    for source in STRANGE:
        test = example(source=source)(test)
    return test


@with_examples
@settings(max_examples=30)
@given(source=st.text(st.characters(), max_size=40))
def test_any_text_is_decoded_or_explained(checkpoint, source):
    try:
        trace = run(checkpoint, checkpoint.query(source, max_new=1))
    except QueryError as error:
        refusal = str(error)  # nothing to read, or too much
    else:
        refusal = ""
    if refusal:
        assert source not in STRANGE
        assert refusal.endswith(".")
        assert "\n" not in refusal
        return
    assert len(trace.src_tokens) == len(trace.src_ids) == trace.encoder_self.shape[2]
    assert PAD not in trace.src_ids
    assert trace.src_ids.index(EOS) == len(trace.src_ids) - 1, "markup must not become the end token"
    for note in trace.notes:
        assert note.encode()
        assert "\u202e" not in note
        assert "\0" not in note


def notes(checkpoint, source):
    return " ".join(run(checkpoint, checkpoint.query(source, max_new=1)).notes)


def test_unknown_pieces_are_named(checkpoint):
    assert "never seen: 🦊. It reads the unknown token instead, so it cannot know" in notes(checkpoint, "ba 🦊")
    assert "never seen: 🦊 我. It reads the unknown token instead" in notes(checkpoint, "🦊 我")
    assert "never seen: U+202E." in notes(checkpoint, "\u202eba lo")
    assert "unknown" not in notes(checkpoint, SOURCE)
    many = "我喜欢喝咖啡。" * 12 + " ba 我" * 5
    assert "never seen 6 of these tokens. It reads the unknown token" in notes(checkpoint, many)
    assert len(notes(checkpoint, "我" * 500)) < 300


def test_traditional_characters_are_converted_and_said(checkpoint):
    trace = run(checkpoint, checkpoint.query("請問 ba", max_new=1))
    assert trace.source_text == "请问 ba"
    assert any("converted to simplified ones: 请问 ba" in note for note in trace.notes)
    assert trace.query.source == "請問 ba"
    assert "converted" not in notes(checkpoint, "请问 ba")


def test_as_many_pieces_as_the_model_reads_are_read(checkpoint):
    words = "ba"
    while len(checkpoint.src_tokenizer.encode(f"{words} ba").ids) < checkpoint.config.max_len:
        words += " ba"
    assert len(run(checkpoint, checkpoint.query(words, max_new=1)).src_ids) <= 32
    with pytest.raises(QueryError, match=r"has 33 tokens; tiny reads at most 32\. Shorten it\."):
        checkpoint.run(f"{words} ba")
    with pytest.raises(QueryError, match="1,048,576 characters; the limit is 4,000"):
        checkpoint.run("b" * 2**20)
