"""Tokenizers of other programs for tests of the library; such a test is skipped where that extension is gone."""

from typing import Any

import pytest

READERS = "glassformer.extensions.tokenizers"


def vocabularies(family: str, files: Any = None, **options: Any) -> Any:
    """A family's tokenizers as a checkpoint stores them."""
    known = pytest.importorskip(f"{READERS}.vocabularies")
    return known.Vocabularies(family, known.Options(**options), files or {})


def word_pieces() -> Any:
    """The pieces of a tiny BERT."""
    return vocabularies("bert", pytest.importorskip("tests.extensions.tokenizers.foreign").word_pieces())
