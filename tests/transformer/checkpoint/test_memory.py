import copy
import itertools

import torch

from tests.transformer.tiny import padded_source, target_ids, tiny_model
from transformer.checkpoint.memory import ALIGNMENT, lay_out


def laid_out(**changes):
    before = tiny_model(**changes).float()
    after = copy.deepcopy(before)
    lay_out(after)
    return before, after


def test_values_shapes_and_names_stay():
    before, after = laid_out(positions="learned", tie_output=False)
    expected, found = before.state_dict(), after.state_dict()
    assert list(expected) == list(found)
    assert all(torch.equal(expected[name], found[name]) for name in expected)


def test_logits_stay():
    before, after = laid_out()
    src, tgt = padded_source(), target_ids(7)
    assert torch.allclose(before(src, tgt), after(src, tgt), rtol=0, atol=1e-5)


def test_tall_matrices_lie_by_columns_and_the_others_by_rows():
    _, after = laid_out()
    up, down = after.encoder.layers[0].ffn.up_proj.weight, after.encoder.layers[0].ffn.down_proj.weight
    assert up.size(0) > up.size(1)
    assert up.stride() == (1, up.size(0))
    assert down.is_contiguous()


def test_all_lie_in_one_block_without_overlap():
    _, after = laid_out()
    parameters = list(after.parameters())
    assert len({p.untyped_storage().data_ptr() for p in parameters}) == 1
    ends = [(p.storage_offset(), p.storage_offset() + p.numel()) for p in parameters]
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(ends))
    assert all(start % ALIGNMENT == 0 for start, _ in ends)


def test_a_vocabulary_shared_by_three_stays_one_tensor():
    _, after = laid_out(shared_vocab=True, src_vocab_size=11, tgt_vocab_size=11)
    assert after.target_table is after.src_table
    assert after.output_weight is after.src_table
