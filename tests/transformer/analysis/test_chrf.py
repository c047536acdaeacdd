"""chrF2 equals sacrebleu's, line by line and of all lines together."""

import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer.analysis.chrf import chrf, chrf_counts, together

TEXTS = st.text(alphabet="abAB .,é\u3000我你\U0001f600\t", max_size=12)
PAIRS = st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=4)


@settings(max_examples=40)
@given(PAIRS)
def test_it_is_sacrebleus(pairs):
    metric = sacrebleu.CHRF()
    counts = [chrf_counts(*pair) for pair in pairs]
    for (output, reference), one in zip(pairs, counts, strict=True):
        assert chrf(one) == pytest.approx(metric.sentence_score(output, [reference]).score, abs=1e-9)
    outputs, references = zip(*pairs, strict=True)
    assert chrf(together(counts)) == pytest.approx(metric.corpus_score(outputs, [references]).score, abs=1e-9)
