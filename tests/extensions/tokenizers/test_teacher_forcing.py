"""Teacher forcing of a model without a tokenizer."""

from glassformer.extensions.tokenizers.options import Options
from glassformer.extensions.tokenizers.tokenizer_families import Vocabularies
from tests.transformer.runs.test_teacher_forcing import refused
from tests.transformer.tiny import DECODER, tiny_model
from transformer import load, score
from transformer.checkpoint.save import CheckpointContents, save


def test_a_model_without_a_tokenizer_takes_numbers(tmp_path):
    model = tiny_model(**DECODER)
    pieces = Vocabularies("raw", Options(size=model.config.src_vocab_size))
    save(CheckpointContents(model.config, model.state_dict(), pieces, {}), tmp_path / "numbers")
    numbers = load(tmp_path / "numbers")
    assert score(numbers, "5 6", "7 8 9").ids == (7, 8, 9)
    assert "but the reference contains '17'" in refused(numbers, "5 6", "7 17")
