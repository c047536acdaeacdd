"""Somebody's file becomes a checkpoint that runs: what it says is read, the rest is asked, nonsense is refused."""

import math
import time

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from glassformer.extensions.importers.library.opening import QuestionsError, preview
from glassformer.extensions.importers.library.tutorial_fields import understand
from glassformer.extensions.importers.library.tutorials import tutorials
from glassformer.extensions.weight_files.weights import open_weights
from tests.conftest import AT_ONCE
from tests.extensions.importers.library.tutorial_models import (
    IDS,
    PADDED,
    POST,
    PRE,
    STYLES,
    Annotated,
    Article,
    TorchModel,
    as_a_tutorial,
    at_random,
    saved,
)
from tests.extensions.refusing import made_or_refused, refusal
from tests.transformer.tiny import DECODER, ENCODER, tiny_model
from transformer.checkpoint import load as native
from transformer.checkpoint.opening import load
from transformer.errors import CheckpointError, within


def fields_of(path, answers=PRE):
    return {one.name: one for one in preview(path, answers=answers).report.fields}


def test_what_is_open_is_an_error_with_its_choices(tmp_path):
    path = saved(tmp_path / "m.pt", at_random(Annotated()).state_dict())
    with pytest.raises(QuestionsError, match=r"n_heads \(one of 8, 4, 2, 1, 16\); norm \(one of pre, post\)") as caught:
        load(path, answers={"pad_id": 0})
    assert [one.name for one in caught.value.report.asked] == [
        "n_heads", "norm", "scale_embedding", "activation", "bos_id", "eos_id",
    ]  # fmt: skip
    assert preview(path).content is None


def test_layers_without_embeddings_are_refused_before_anything_is_asked(tmp_path):
    path = saved(tmp_path / "m.pt", torch.nn.Transformer(16, 2, 1, 1, 32).state_dict())
    for answers in ({}, {"n_heads": 2, "positions": "sinusoidal", "tie_output": True}):
        with pytest.raises(
            CheckpointError, match=r"no table of token embeddings.* `nn.Transformer` holds none"
        ) as caught:
            load(path, answers=answers)
        assert not isinstance(caught.value, QuestionsError)
    assert preview(path).report.lacks_embeddings


IMPOSSIBLE = [
    ({"n_heads": 5}, "n_heads: found 5, expected one of 8, 4, 2, 1, 16"),
    ({"scale_embedding": 1}, "scale_embedding: found 1, expected one of true, false"),
    ({"colour": "red"}, "there is no question named 'colour'"),
    ({"eos_id": 17}, "eos_id: found 17, expected 0 to 16"),
    ({"eos_id": 0}, r"eos_id: equals pad_id \(0\)"),
]
NO_NAMES = [
    ({"src_table": "words"}, "src_table: the file has no tensor named 'words'; its tensors are"),
    ({"ignored": "nothing"}, "ignored: 'nothing' is not among the tensors whose purpose is unknown"),
    ({"ignored": 3}, "ignored: found 3, expected names"),
    ({"src_table": "criterion.weight", "ignored": "words_in.w"}, r"has the shape \[19\]; expected 2 axes"),
    ({"output_table": "words_in.w", "ignored": "*"}, r"'words_in.w' \(found \[17, 16\], expected \[19, 16\]\)"),
]


def test_an_answer_that_cannot_be_is_refused(tmp_path):
    path = saved(tmp_path / "m.pt", at_random(Annotated()).state_dict())
    _, other = strange(tmp_path / "n.pt")
    for file, known, rows in ((path, PRE, IMPOSSIBLE), (other, PRE | NAMED | {"ignored": "criterion.*"}, NO_NAMES)):
        for answer, message in rows:
            refusal(lambda file=file, said=known | answer: load(file, answers=said), message, most=2_000)


def test_halves_are_their_float32(tmp_path):
    """What wrappers put around a state is left out in `test_state_dict_search`."""
    theirs = at_random(Annotated()).half()
    halves = load(saved(tmp_path / "half.pt", theirs.state_dict()), answers=PRE)
    assert (halves.model(*PADDED) - theirs.float()(*PADDED)).abs().max() < 1e-3  # their positions are halves, too


STRANGE = {
    "src_tok_emb.embedding.weight": "words_in.w", "tgt_tok_emb.embedding.weight": "words_out.w",
    "generator.weight": "to_words.weight", "generator.bias": "to_words.bias",
    "positional_encoding.pos_embedding": "places.sines",
}  # fmt: skip
NAMED = {
    "src_table": "words_in.w", "tgt_table": "words_out.w", "output_table": "to_words.weight",
    "positions": "places.sines",
}  # fmt: skip


def strange(path):
    """torch.nn.Transformer between parts with names that nobody knows."""
    theirs = at_random(TorchModel(norm_first=True))
    state = {STRANGE.get(name, name): tensor for name, tensor in theirs.state_dict().items()}
    return theirs, saved(path, state | {"criterion.weight": torch.ones(19)})


def test_tensors_of_unknown_names_are_asked_about_with_those_of_their_shape(tmp_path):
    theirs, path = strange(tmp_path / "m.pt")
    report = preview(path).report
    asked = {one.name: [choice.value for choice in one.choices] for one in report.asked}
    assert asked["src_table"] == ["words_in.w", "words_out.w"]  # in the order of the file; the other has a bias
    assert asked["output_table"] == ["words_out.w", "to_words.weight", "words_in.w"]  # "out" is in the name
    assert asked["positions"][:3] == ["places.sines", "words_in.w", "words_out.w"]
    assert asked["positions"][-2:] == ["sinusoidal", "none"]
    assert {"n_heads", "norm", "pad_id", "tgt_table", "output_table"} <= asked.keys()
    assert "words_in.w [17, 16]" in str(report)
    assert [one.name for one in preview(path, answers=PRE | NAMED).report.asked] == ["ignored"]
    checkpoint = load(path, answers=PRE | NAMED | {"ignored": "criterion.*"})
    assert (checkpoint.model(*PADDED) - theirs(*PADDED)).abs().max() < 1e-5
    assert checkpoint.config.positions == "sinusoidal"
    assert fields_of(path, NAMED | {"tgt_table": "words_in.w"})["shared_vocab"].value is True


def test_each_kind_is_told_apart(tmp_path, checkpoint_folder):
    assert load(checkpoint_folder).content_hash == native.load(checkpoint_folder).content_hash
    assert load(checkpoint_folder / "model.safetensors").name == checkpoint_folder.name
    refusal(lambda: preview(checkpoint_folder), "is already a checkpoint of this program")
    refusal(lambda: load(checkpoint_folder, answers={"n_heads": 4}), "so there are no questions")
    for config, message in (
        ('{"model_type": "bloom"}', "model_type: found 'bloom'"),
        ("{", r"config\.json: "),
        ('{"heads": 4}', "has no weights file"),
    ):
        (tmp_path / "config.json").write_text(config)
        refusal(lambda: load(tmp_path), message)
    saved(tmp_path / "m.pt", at_random(Annotated()).state_dict())
    assert load(tmp_path, answers=PRE).config.n_heads == 4
    path = saved(tmp_path / "other.pt", {"layer1.weight": torch.ones(3, 3)})
    refusal(lambda: load(path), r"is usual for a layer .* the file has 'layer1.weight'")


def test_what_is_missing_too_many_twice_or_impossible_is_named(tmp_path):
    state, path = at_random(Annotated()).state_dict(), tmp_path / "m.pt"
    gone = "decoder.layers.1.src_attn.linears.2.bias"
    more = {f"encoder.layers.0.self_attn.linears.{one}": torch.ones(2) for one in ("4.weight", "0.Weight")}
    report = preview(saved(path, {name: state[name] for name in state if name != gone} | more), answers=PRE).report
    assert set(report.missing) == {"decoder.layers.1.cross_attn.v_proj.bias"}
    assert len(report.left_over) == 2
    assert not report.can_be_written
    packed = torch.ones(16, 16)
    for content, message in (
        ({name: state[name] for name in state if name != gone}, r"1 tensor is missing\. .*1\.cross_attn.v_proj"),
        ({name.replace("encoder.layers.1", "encoder.layers.5"): one for name, one in state.items()}, "layer 1 is miss"),
        (state | {"encoder.layers.0.self_attn.W_q.weight": packed}, r"self_attn.W_q.weight' would both become"),
        ({"encoder.layers.0.self_attn.in_proj_weight": packed}, "does not allow this conversion: split into queries"),
        ({"encoder.layers.0.self_attn.w_q.weight": torch.ones(16)}, r"has the shape .*; expected 2 axes"),
    ):
        refusal(lambda content=content: load(saved(path, content), answers=PRE), message)
    began = time.process_time()
    many = r"128 tensors are missing: 'encoder.layers.2.self_attn.linears.0.weight"
    refusal(lambda: load(saved(path, state), answers=PRE | {"n_encoder_layers": 10}), many)
    assert time.process_time() - began < AT_ONCE


@pytest.mark.parametrize("off", [0.1, math.nan])
def test_positions_that_no_formula_gives_are_learned(tmp_path, off):
    theirs = at_random(Article(STYLES["S4"]))
    theirs.positional_encoding.pe += off
    checkpoint = load(saved(tmp_path / "m.pt", theirs.state_dict()), answers=POST)
    assert checkpoint.config.positions == "learned"
    for stack in (checkpoint.model.encoder, checkpoint.model.decoder):
        table = stack.embedding.positions.table
        assert torch.allclose(table, theirs.positional_encoding.pe[0], rtol=0, atol=0, equal_nan=True)


def test_tied_tables_are_one_and_numbers_beside_the_weights_answer(tmp_path):
    theirs = at_random(Annotated(vocabs=(19, 19)))
    (shared, *others) = map(theirs.get_submodule, ("src_embed.0.lut", "tgt_embed.0.lut", "generator.proj"))
    for other in others:
        other.weight = shared.weight
    ours = load(saved(tmp_path / "m.pt", theirs.state_dict()), answers=PRE).model
    assert (ours.config.shared_vocab, ours.config.tie_output) == (True, True)
    assert (ours(*PADDED) - theirs(*PADDED)).abs().max() < 1e-5
    beside = {"args": {"num_heads": 2, "pad_idx": 1, "activation": "gelu", "eos_idx": "x"}, "hyper": {"nhead": 3}}
    fields = fields_of(saved(tmp_path / "n.pt", {"state_dict": theirs.state_dict()} | beside), {})
    assert (fields["n_heads"].how, fields["n_heads"].value) == ("read", 2)
    assert str(fields["n_heads"].evidence) == "This value is saved with the weights as 'args.num_heads'."
    assert (fields["pad_id"].value, fields["activation"].value, fields["eos_id"].how) == (1, "gelu", "asked")


@pytest.mark.parametrize(
    ("stack", "asked", "positions"),
    [(DECODER, ["pad_id", "eos_id"], "learned"), (ENCODER, ["pad_id"], "learned"), (ENCODER, ["pad_id"], "sinusoidal")],
    ids=["decoder", "encoder", "by a formula"],
)
def test_a_model_of_one_stack_is_asked_for_no_ids_that_it_does_not_use(tmp_path, stack, asked, positions):
    theirs = tiny_model(dtype=torch.float32, positions=positions, tie_output=False, output_bias=True, **stack)
    state = {f"my.model.{name}": tensor for name, tensor in as_a_tutorial(theirs).items()}
    answers = {name: PRE[name] for name in PRE if name not in IDS} | {"n_heads": 3}
    answers |= {} if positions == "learned" else {"positions": positions, "max_len": 16}
    path = saved(tmp_path / "m.pt", state)
    assert [one.name for one in preview(path, answers=answers).report.asked] == asked
    checkpoint = load(path, answers=answers | {name: IDS[name] for name in asked})
    assert torch.allclose(checkpoint.model(*PADDED), theirs(*PADDED), atol=1e-5)
    assert checkpoint.run("5 6 7").src_ids == (5, 6, 7)  # ids are read as they are typed


NAMES = st.sampled_from([rule.source for rule in tutorials().rules])
NUMBERS, KINDS = st.sampled_from(["0", "1", "7", "01", "9999999"]), st.sampled_from(["weight", "bias"])
FILLED = st.builds(lambda name, n, p: name.replace("{n}", n).replace("{p}", p), NAMES, NUMBERS, KINDS)
SHAPES = st.lists(st.sampled_from([0, 1, 2, 3, 6, 12]), max_size=4)


@given(sizes=st.dictionaries(FILLED | st.text("ab.0{n}", max_size=9), SHAPES, max_size=12))
def test_any_names_and_shapes_are_understood_or_refused(tmp_path_factory, sizes):
    path = tmp_path_factory.mktemp("m") / "model.safetensors"
    save_file({name: torch.zeros(shape) for name, shape in sizes.items()}, path)
    with open_weights(path) as weights:

        def understood():
            with within(weights.label):
                return understand(weights).report

        report = made_or_refused(understood, f"{path}: ")
    if report is None:
        return
    assert [one.name for one in report.file_tensors] == list(weights.tensors)
    assert not report.can_be_written
    assert str(report).endswith((" needs an answer.", " need answers."))
