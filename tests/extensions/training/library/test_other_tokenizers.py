"""A training keeps to tokenizers of its own kind."""

import pytest

from glassformer.extensions.training.library import run as training
from tests.extensions.tokenizers.test_tokenizer_files import written
from transformer.errors import DataError


def test_a_training_does_not_start_from_another_librarys_tokenizer(tmp_path):
    written("gpt2", tmp_path / "gpt2")
    job = type("Job", (), {"start_from": tmp_path / "gpt2"})
    with pytest.raises(DataError, match="its tokenizer comes from another library"):
        training._vocabularies(job, [])
