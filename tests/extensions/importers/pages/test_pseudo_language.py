"""Each text of the pages that open other programs' models is translated as a whole, or is data."""

from glassformer.extensions.huggingface.folder import FAMILIES
from glassformer.extensions.importers.library.readers import SUFFIXES
from tests.extensions.parts_of_pages import PARTS
from tests.pages.test_pseudo_language import PARTS as KERNELS
from tests.pages.test_pseudo_language import explained_by, spoken_whole
from tests.pseudo_language import words_of


def test_the_page_is_spoken_whole(open_page):
    spoken_whole(open_page, PARTS["open"], words_of(*SUFFIXES))


def test_what_may_lie_beside_checkpoints_is_spoken_whole(open_page, monkeypatch):
    explained_by(monkeypatch, "importers")
    data = words_of(*SUFFIXES, *FAMILIES, *(one.name for one in FAMILIES.values()))
    spoken_whole(open_page, KERNELS["checkpoints"], {"dev", "tsv"} | data)
