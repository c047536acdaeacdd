"""On another device a measured corpus is the same: see `tests/transformer/test_devices.py`."""

from glassformer.extensions.corpus.library.measuring import measure
from glassformer.extensions.corpus.library.tables import CorpusLine, CorpusOptions
from tests.transformer.devices import OTHER, TEXT
from tests.transformer.devices import of_name as of_name
from tests.transformer.devices import pair as pair
from tests.transformer.devices import refused_without_cuda as refused_without_cuda


def test_a_corpus_is_measured_the_same(pair):
    lines = [CorpusLine(1, TEXT, OTHER), CorpusLine(2, OTHER, TEXT), CorpusLine(3, "ke lo su ta", "ba")]
    for decode in (False, True) if pair[0].model.anatomy.writes else (False,):
        here, there = (measure(one, lines, CorpusOptions(decode=decode, effect=not decode, vectors=2)) for one in pair)
        for table in ("sentences", "heads", "vectors"):
            assert getattr(there, table).equals(getattr(here, table)), table
        assert not any(here.sentences["problem"].to_pylist())


def test_corpus_has_the_option(checkpoint_folder, refused_without_cuda):
    file = str(checkpoint_folder / "config.json")
    assert refused_without_cuda("corpus", "--pairs", file, "--out", "x")
