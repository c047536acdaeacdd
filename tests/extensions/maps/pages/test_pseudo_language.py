"""What is said of files of maps in the pseudo-language: each text is whole sentences in ⟦…⟧, or data."""

from glassformer.extensions.maps.source import ARRAYS
from tests.pages.test_pseudo_language import PARTS, explained_by, spoken_whole
from tests.pseudo_language import words_of


def test_what_may_lie_beside_checkpoints_is_spoken_whole(open_page, monkeypatch):
    explained_by(monkeypatch, "maps")
    spoken_whole(open_page, PARTS["checkpoints"], {"dev", "tsv", *words_of(*ARRAYS)})
