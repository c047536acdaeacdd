"""Where texts are cut into words, at every character that Python knows, against the library `tokenizers`."""

import unicodedata

from tokenizers import pre_tokenizers

from glassformer.extensions.tokenizers import byte_pairs
from tests.extensions.tokenizers import foreign


def test_words_of_bytes_are_cut_as_the_pattern_of_gpt2_cuts_them_at_every_character():
    theirs = pre_tokenizers.ByteLevel(add_prefix_space=False)
    for c in foreign.characters():
        for text in (f"a{c}b", f" {c} 1{c}{c}"):
            expected = [end - start for _, (start, end) in theirs.pre_tokenize_str(text)]
            assert [len(word) for word in byte_pairs.words(text)] == expected, hex(ord(c))


def test_words_of_bert_differ_at_new_characters_alone():
    newer = foreign.newer_than_theirs()
    assert len(newer) < 600
    assert min(newer) > "\u0600"
    assert not any(unicodedata.category(c)[0] in "LNZ" for c in newer)
