"""Whatever somebody types is decoded, or one sentence explains why not."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from transformer import run
from transformer.errors import QueryError

PAD, EOS = 0, 3
STRANGE = [
    "👩‍👩‍👧 🦊 שלום 我喜欢",
    "\u202eba lo\u202c b\u0301\u0302\u0303a",
    "ba\0lo\nmi\tta \ud800 \udfff",
    "<script>alert(1)</script> &amp;",
    "<s> </s> <pad> <unk>",
    "＝ＢＡ 𝓫𝓪 𝔩𝔬",
]


@settings(max_examples=30)
@given(texts=st.tuples(st.text(st.characters(), max_size=40)))
@example(texts=STRANGE)
def test_any_text_is_decoded_or_explained(checkpoint, texts):
    for text in texts:
        try:
            trace = run(checkpoint, checkpoint.query(text, max_new=1))
        except QueryError as error:
            assert text not in STRANGE  # nothing to read, or too much
            assert str(error).endswith(".")  # noqa: PT017 (any text may be read)
            assert "\n" not in str(error)  # noqa: PT017
            continue
        assert len(trace.src_tokens) == len(trace.src_ids) == trace.encoder_self.shape[2]
        assert PAD not in trace.src_ids
        assert trace.src_ids.index(EOS) == len(trace.src_ids) - 1, "markup must not become the end token"
        assert not any("\u202e" in note or "\0" in note for note in trace.notes)
        assert all(note.encode() for note in trace.notes)


def test_a_source_of_nothing_visible_or_too_long_is_explained(checkpoint):
    for source, said in (
        *((text, r"The source is empty\. Type a sentence\.$") for text in ("", "\n\t \u3000\u00a0")),
        *((text, "contains nothing that the model can read") for text in ("\u200b", "\x01\x02\ufeff", "▁▁")),
        ("b" * 2**20, "1,048,576 characters; the limit is 4,000"),
    ):
        with pytest.raises(QueryError, match=said):
            run(checkpoint, checkpoint.query(source))
    words = "ba"
    while len(checkpoint.src_tokenizer.encode(f"{words} ba").ids) < checkpoint.config.max_len:
        words += " ba"
    assert len(run(checkpoint, checkpoint.query(words, max_new=1)).src_ids) <= 32
    with pytest.raises(QueryError, match=r"has 33 tokens; tiny reads at most 32\. Shorten it\."):
        checkpoint.run(f"{words} ba")


def test_unknown_pieces_are_named_and_traditional_characters_converted(checkpoint):
    def notes(source):
        return " ".join(run(checkpoint, checkpoint.query(source, max_new=1)).notes)

    assert "never seen: 🦊. It reads the unknown token instead, so it cannot know" in notes("ba 🦊")
    assert "never seen: 🦊 我. It reads the unknown token instead" in notes("🦊 我")
    assert "never seen: U+202E." in notes("\u202eba lo")
    assert "unknown" not in notes("ba lo mi ta")
    assert "never seen 6 of these tokens. It reads the unknown token" in notes("我喜欢喝咖啡。" * 12 + " ba 我" * 5)
    assert len(notes("我" * 500)) < 300
    trace = run(checkpoint, checkpoint.query("請問 ba", max_new=1))
    assert (trace.source_text, trace.query.source) == ("请问 ba", "請問 ba")
    assert any("converted to simplified ones: 请问 ba" in note for note in trace.notes)
    assert "converted" not in notes("请问 ba")
