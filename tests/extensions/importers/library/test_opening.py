"""From somebody's file to a checkpoint that runs: what is asked, what answers do, and equal numbers at the end."""

import math
from dataclasses import dataclass

import pytest
import torch

from glassformer.extensions.importers.library.opening import QuestionsError, preview
from glassformer.extensions.importers.library.report import Opened
from glassformer.extensions.weight_files.library.weights import Weights, open_weights
from tests.extensions.importers.library import tutorial_models
from tests.extensions.importers.library.test_tutorials import S4_NAMES
from tests.extensions.importers.library.tutorial_models import STYLES, Annotated, Article, Table, TorchModel, at_random
from tests.transformer.tiny import DECODER, ENCODER, tiny_model
from transformer.checkpoint import load as native
from transformer.checkpoint.opening import load
from transformer.errors import CheckpointError
from transformer.model.transformer import Transformer
from transformer.tap import Recorder, tap_of

IDS = {"pad_id": 0, "bos_id": 2, "eos_id": 3}
POST = {"n_heads": 4, "activation": "relu", "norm": "post", "scale_embedding": False, **IDS}
PRE = POST | {"norm": "pre", "scale_embedding": True}
PADDED = torch.tensor([[5, 6, 7, 8, 9, 10], [11, 4, 5, 6, 0, 0]]), torch.tensor([[2, 5, 6, 7], [2, 8, 9, 10]])


def saved(path, content):
    path.parent.mkdir(exist_ok=True)
    torch.save(content, path)
    return path


MODELS = {
    "annotated": (lambda: Annotated(), PRE),
    **{
        name: (lambda style=style: Article(style), POST | {"scale_embedding": style["scaled"]})
        for name, style in STYLES.items()
        if name in ("S0", "S1", "S4")
    },
}


@pytest.fixture(autouse=True)
def listened(monkeypatch):
    """What the reference models attend to: a map [B, H, Q, K] a call."""
    maps = []

    def attend(q, k, v, mask, heads, fill):
        q, k, v = (x.view(*x.shape[:2], heads, -1).transpose(1, 2) for x in (q, k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        maps.append(scores.masked_fill(mask == 0, fill).softmax(-1))
        return (maps[-1] @ v).transpose(1, 2).flatten(2)

    monkeypatch.setattr(tutorial_models, "attend", attend)
    return maps


def maps_of(model):
    """Our maps in the order of the reference models' calls."""
    recorder = Recorder(["*weights"])
    logits = model(*PADDED, tap=tap_of(recorder))
    stacks = [
        *(f"encoder.{n}.self_attn" for n in range(2)),
        *(f"decoder.{n}.{kind}" for n in range(3) for kind in ("self_attn", "cross_attn")),
    ]
    return logits, [recorder.values[f"{name}.weights"] for name in stacks]


@dataclass(frozen=True)
class Exact:
    """A file whose values are read as float64, so that what is computed with them is not rounded to float32."""

    weights: Weights

    def read(self, name):
        return self.weights.read(name).double()


@pytest.mark.parametrize("name", MODELS)
def test_maps_are_those_of_the_model_to_the_precision_of_the_numbers(tmp_path, listened, name):
    make, answers = MODELS[name]
    theirs = at_random(make())
    path = saved(tmp_path / "m.pt", theirs.state_dict())
    content = preview(path, answers=answers).content
    checkpoint = load(path, answers=answers)
    assert {5, 6, 7} <= set(checkpoint.run("5 6 7").src_ids)
    logits, maps = maps_of(checkpoint.model)
    expected = theirs(*PADDED)
    assert expected.abs().max() > 0.5
    assert len(listened) == len(maps) == 8
    assert (logits - expected).abs().max() < 1e-5
    assert max((ours - their).abs().max() for ours, their in zip(maps, listened, strict=True)) < 1e-6

    listened.clear()
    with open_weights(path) as weights:
        state = dict(Opened(content.match, content.facts, Exact(weights)).read())
    exact = Transformer(content.config).double().eval()
    exact.load_state_dict(state)
    positions = exact.encoder.embedding.positions.table
    for table in (one for one in theirs.modules() if isinstance(one, Table)):
        assert (table.pe[0] - positions).abs().max() < 1e-6
        table.pe = positions[None]
    logits, maps = maps_of(exact)
    assert (logits - theirs.double()(*PADDED)).abs().max() < 1e-10
    assert max((ours - their).abs().max() for ours, their in zip(maps, listened, strict=True)) < 1e-10


def test_what_is_open_is_an_error_with_its_choices(tmp_path):
    path = saved(tmp_path / "m.pt", at_random(Annotated()).state_dict())
    with pytest.raises(QuestionsError, match=r"n_heads \(one of 4, 2, 8, 1, 16\); norm \(one of pre, post\)") as caught:
        load(path, answers={"pad_id": 0})
    assert [one.name for one in caught.value.report.asked] == [
        "n_heads", "norm", "scale_embedding", "activation", "bos_id", "eos_id",
    ]  # fmt: skip
    assert preview(path).content is None


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"n_heads": 5}, "n_heads: found 5, expected one of 4, 2, 8, 1, 16"),
        ({"norm": "middle"}, "norm: found 'middle', expected one of pre, post"),
        ({"scale_embedding": 1}, "scale_embedding: found 1, expected one of true, false"),
        ({"colour": "red"}, "there is no question named 'colour'"),
        ({"eos_id": 17}, "eos_id: found 17, expected 0 to 16"),
        ({"eos_id": 0}, r"eos_id: equals pad_id \(0\)"),
        ({"n_encoder_layers": 3}, "tensors are missing: 'encoder.layers.2"),
    ],
)
def test_an_answer_that_cannot_be_is_refused(tmp_path, answer, message):
    path = saved(tmp_path / "m.pt", at_random(Annotated()).state_dict())
    with pytest.raises(CheckpointError, match=message):
        load(path, answers=PRE | answer)


def wrapped(state):
    """What training programs make of a dictionary of weights."""
    yield {"state_dict": {f"module.{name}": tensor for name, tensor in state.items()}, "epoch": 3}
    yield {f"_orig_mod.{name}": tensor for name, tensor in state.items()}
    yield {"model": {name: tensor.double() for name, tensor in state.items()}, "optimizer": {"lr": 1e-3}}


def test_wrapped_files_are_the_same_checkpoint(tmp_path):
    state = at_random(Annotated()).state_dict()
    plain = load(saved(tmp_path / "plain.pt", state), answers=PRE)
    for i, content in enumerate(wrapped(state)):
        assert load(saved(tmp_path / f"{i}.pt", content), answers=PRE) == plain
    assert load(saved(tmp_path / "other.pt", state), answers=PRE | {"n_heads": 2}) != plain


def test_halves_are_their_float32(tmp_path):
    theirs = at_random(Annotated()).half()
    checkpoint = load(saved(tmp_path / "m.pt", theirs.state_dict()), answers=PRE)
    assert (checkpoint.model(*PADDED) - theirs.float()(*PADDED)).abs().max() < 1e-3  # their positions are halves, too


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
    asked = {one.name: [choice.value for choice in one.choices] for one in preview(path).report.asked}
    assert asked["src_table"] == ["to_words.weight", "words_in.w", "words_out.w"]  # in the order of the file
    assert asked["output_table"] == ["words_out.w", "to_words.weight", "words_in.w"]  # "out" is in the name
    assert asked["positions"][:3] == ["places.sines", "to_words.weight", "words_in.w"]
    assert asked["positions"][-2:] == ["sinusoidal", "none"]
    assert {"n_heads", "norm", "pad_id", "tgt_table", "output_table"} <= asked.keys()
    assert "words_in.w [17, 16]" in str(preview(path).report)
    report = preview(path, answers=PRE | NAMED).report
    assert [one.name for one in report.asked] == ["ignored"]
    checkpoint = load(path, answers=PRE | NAMED | {"ignored": "criterion.*"})
    assert (checkpoint.model(*PADDED) - theirs(*PADDED)).abs().max() < 1e-5
    assert checkpoint.config.positions == "sinusoidal"
    shared = preview(path, answers=NAMED | {"tgt_table": "words_in.w"}).report
    assert {one.name: one.value for one in shared.fields}["shared_vocab"] is True


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"src_table": "words"}, "src_table: the file has no tensor named 'words'; its tensors are"),
        ({"ignored": "nothing"}, "ignored: 'nothing' is not among the tensors whose purpose is unknown"),
        ({"ignored": 3}, "ignored: found 3, expected names"),
        (
            {"src_table": "criterion.weight", "ignored": "words_in.w"},
            "'criterion.weight' has the shape \\[19\\]; expected 2 axes",
        ),
        ({"output_table": "words_in.w", "ignored": "*"}, r"'words_in.w' \(found \[17, 16\], expected \[19, 16\]\)"),
    ],
)
def test_a_name_that_cannot_be_is_refused(tmp_path, answer, message):
    _, path = strange(tmp_path / "m.pt")
    with pytest.raises(CheckpointError, match=message):
        load(path, answers=PRE | NAMED | {"ignored": "criterion.*"} | answer)


def test_each_kind_is_told_apart(tmp_path, checkpoint_folder):
    assert load(checkpoint_folder).content_hash == native.load(checkpoint_folder).content_hash
    assert load(checkpoint_folder / "model.safetensors").name == checkpoint_folder.name
    with pytest.raises(CheckpointError, match="is already a checkpoint of this program"):
        preview(checkpoint_folder)
    with pytest.raises(CheckpointError, match="so there are no questions"):
        load(checkpoint_folder, answers={"n_heads": 4})
    (tmp_path / "config.json").write_text('{"model_type": "bloom"}')
    with pytest.raises(CheckpointError, match="model_type: found 'bloom'"):
        load(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"config\.json: "):
        load(tmp_path)
    (tmp_path / "config.json").write_text('{"heads": 4}')
    with pytest.raises(CheckpointError, match="has no weights file"):
        load(tmp_path)
    saved(tmp_path / "m.pt", at_random(Annotated()).state_dict())
    assert load(tmp_path, answers=PRE).config.n_heads == 4
    path = saved(tmp_path / "other.pt", {"layer1.weight": torch.ones(3, 3)})
    with pytest.raises(
        CheckpointError, match=r"no tensor has a name that is usual for a layer .* the file has 'layer1.weight'"
    ):
        load(path)


def test_what_no_answer_can_mend_is_an_error_that_names_it(tmp_path):
    state = at_random(Annotated()).state_dict()
    del state["decoder.layers.1.src_attn.linears.2.bias"]
    with pytest.raises(CheckpointError, match=r"1 tensor is missing\. .* decoder.layers.1.cross_attn.v_proj"):
        load(saved(tmp_path / "m.pt", state), answers=PRE)


@pytest.mark.parametrize(
    ("stack", "asked"), [(DECODER, ["pad_id", "eos_id"]), (ENCODER, ["pad_id"])], ids=["decoder", "encoder"]
)
def test_a_model_of_one_stack_is_asked_for_no_ids_that_it_does_not_use(tmp_path, stack, asked):
    theirs = tiny_model(dtype=torch.float32, positions="learned", tie_output=False, output_bias=True, **stack)
    state = theirs.state_dict()
    for ours, called in S4_NAMES:
        state = {name.replace(ours, called): tensor for name, tensor in state.items()}
    path, answers = saved(tmp_path / "m.pt", state), {name: PRE[name] for name in PRE if name not in IDS}
    answers |= {"n_heads": 3}
    report = preview(path, answers=answers).report
    assert [one.name for one in report.asked] == asked
    checkpoint = load(path, answers=answers | {name: IDS[name] for name in asked})
    assert torch.allclose(checkpoint.model(*PADDED), theirs(*PADDED), atol=1e-5)
    assert checkpoint.run("5 6 7").src_ids == (5, 6, 7)  # ids are read as they are typed
