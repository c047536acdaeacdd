"""Decoding for a score names the first site of what is not finite."""

import pytest

from glassformer.extensions.training.library.scoring import decode
from tests.transformer.runs.test_finite import SOURCE
from tests.transformer.runs.test_finite import checkpoint as checkpoint
from tests.transformer.runs.test_finite import hidden as hidden
from transformer.errors import QueryError
from transformer.runs.query import Beam, Greedy


@pytest.mark.parametrize("decoding", [Greedy(), Beam(size=2)])
def test_so_does_decoding_for_a_score(hidden, decoding):
    sources = [hidden.src_tokenizer.encode(text).ids for text in (SOURCE, "mi")]
    with pytest.raises(QueryError, match=r"decoder\.0\.cross_attn\.queries"):
        decode(hidden.model, sources, decoding, limit=lambda n: 5)
