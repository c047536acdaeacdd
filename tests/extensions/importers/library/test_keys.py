"""Rules of names are data: each is matched whole, every tensor is accounted for, and shapes are known unread."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from glassformer.extensions.importers.library import keys
from glassformer.extensions.importers.library.keys import (
    AS_IS,
    FLATTENED,
    PLUS_ONE,
    SPLIT_COLUMNS,
    SPLIT_HEADS,
    SPLIT_ROWS,
    TRANSPOSED,
    KeyTable,
    Rule,
    best_match,
    cut_rows,
    match,
    shapes_of,
)
from glassformer.extensions.importers.library.report import Opened
from glassformer.extensions.weight_files.weights import open_weights
from transformer.errors import CheckpointError
from transformer.i18n import say

TABLE = KeyTable(
    say("A toy."),
    rules=(
        Rule("h.{n}.W_q.{p}", ("decoder.layers.{n}.self_attn.q_proj.{p}",)),
        Rule("h.{n}.c.weight", ("q.{n}", "k.{n}", "v.{n}"), SPLIT_COLUMNS),
        Rule("h.{n}.qkv.weight", ("a.{n}", "b.{n}", "c.{n}"), SPLIT_HEADS),
        Rule("list.0.weight", ("first",)),
        Rule("table", ("table",), PLUS_ONE),
        Rule("h.{n}.mask", (), why_not=say("it is a mask")),
    ),
)


def test_a_name_is_matched_whole():
    names = ["h.0.W_q.weight", "h.0.W_Q.weight", "h.00.W_q.weight", "xh.0.W_q.weight", "h.0.W_q.weightx", "h.0.W_q.w",
             "h.1.mask", "list.0.weight", "list.1.weight", "h.-1.W_q.bias", "h.12345.W_q.bias"]  # fmt: skip
    found = match(TABLE, names)
    assert [one.targets for one in found.taken] == [("decoder.layers.0.self_attn.q_proj.weight",), ("first",)]
    assert found.ignored == {"h.1.mask": "it is a mask"}
    assert set(found.left_over) == set(names) - {"h.0.W_q.weight", "h.1.mask", "list.0.weight"}


@pytest.mark.parametrize("prefix", ["", "my.model."])
def test_a_prefix_that_all_names_have_is_found(prefix):
    found = best_match(TABLE, [prefix + "h.0.W_q.weight", prefix + "h.1.W_q.weight"])
    assert (found.prefix, len(found.taken), found.n_layers("decoder")) == (prefix, 2, 2)


def test_values_arrive_as_the_rules_say(tmp_path):
    state = {"h.0.c.weight": torch.randn(4, 12), "h.0.qkv.weight": torch.randn(12, 4), "table": torch.randn(3, 2)}
    save_file(state, tmp_path / "model.safetensors")
    with open_weights(tmp_path) as weights:
        found = match(TABLE, list(weights.tensors))
        made = dict(Opened(found, {"n_heads": 2}, weights).read())
        shapes = keys.shapes(found, weights, {"n_heads": 2})
        assert shapes == {name: tuple(tensor.shape) for name, tensor in made.items()}
        assert not {"a.0", "b.0"} & set(keys.shapes(found, weights, {}))  # until the heads are known
        with pytest.raises(
            CheckpointError,
            match=r"'h.0.qkv.weight' has the shape .*, which does not allow this conversion: split .* head by head",
        ):
            keys.shapes(found, weights, {"n_heads": 5})
    assert torch.equal(made["k.0"], state["h.0.c.weight"][:, 4:8].t())
    by_head = state["h.0.qkv.weight"].view(2, 3, 2, 4)
    assert torch.equal(made["b.0"], by_head[:, 1].reshape(4, 4))
    assert torch.equal(made["table"], state["table"] + 1)


def test_reshapes_move_values_and_nothing_else():
    """What they make of biases and of tables; matrices are above, and in the parity of every dialect."""
    matrix, bias = torch.arange(12.0).view(6, 2), torch.arange(6.0)
    for table in (matrix, matrix[None], matrix[:, None]):
        assert torch.equal(FLATTENED.apply(table, {})[0], matrix)
    assert torch.equal(cut_rows(2).apply(matrix, {})[0], matrix[2:])
    assert [part.tolist() for part in SPLIT_COLUMNS.apply(bias, {})] == [[0, 1], [2, 3], [4, 5]]
    assert [part.tolist() for part in SPLIT_HEADS.apply(bias, {"n_heads": 2})] == [[0, 3], [1, 4], [2, 5]]


RESHAPES = [AS_IS, TRANSPOSED, SPLIT_ROWS, SPLIT_COLUMNS, SPLIT_HEADS, FLATTENED, PLUS_ONE, cut_rows(2), keys.ONE_MAP,
            keys.WITH_NO_OUTPUT_MAP, keys.UNIT_VECTORS]  # fmt: skip


@given(reshape=st.sampled_from(RESHAPES), shape=st.lists(st.integers(0, 7), max_size=4), heads=st.integers(0, 4))
def test_a_shape_is_known_or_refused_before_anything_is_read(reshape, shape, heads):
    try:
        known = shapes_of(reshape, shape, {"n_heads": heads})
    except ValueError:
        return
    made = reshape.apply(torch.zeros(shape), {"n_heads": heads})
    assert known == tuple(tuple(tensor.shape) for tensor in made)


@given(names=st.lists(st.text("h.0Wq_abwt", max_size=12) | st.just("." * 5000), unique=True, max_size=8))
def test_any_names_are_accounted_for(names):
    found = best_match(TABLE, names)
    used = [one.source for one in found.taken]
    assert sorted([*used, *found.ignored, *found.left_over]) == sorted(names)
