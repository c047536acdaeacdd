"""Parts under names of one's own are asked about and never guessed; what takes part is not offered as needless.

Weights in parts are put together, or refused by what they are.
"""

import math
from dataclasses import replace

import pytest
import torch
from safetensors.torch import save_model
from torch import nn
from torch.nn.utils import parametrizations, weight_norm

from glassformer.extensions.importers.library.opening import QuestionsError, preview
from tests.extensions.importers.library.recipes import Recipe, State, of_sides, within
from tests.extensions.importers.library.repository_codes import LLAMA2C
from tests.extensions.importers.library.tutorial_models import (
    IDS,
    PADDED,
    POST,
    PRE,
    STYLES,
    Annotated,
    Article,
    TorchModel,
    at_random,
    saved,
    sinusoids,
)
from tests.extensions.refusing import refusal
from transformer.checkpoint.opening import load
from transformer.errors import CheckpointError

TUNED = Recipe(
    of_sides("{}.embedding"), "fc_out", within("self_attn self_attn cross_attn", "w_q w_k w_v w_o"),
    ("linear1 linear2",), ("norm1 norm2", "norm1 norm2 norm3"), pad=0,
)  # fmt: skip
S1 = POST | {"scale_embedding": True}


def article(vocabs=(17, 19)):
    return at_random(Article(STYLES["S1"], vocabs=vocabs))


def renamed(state, names):
    """A state with other names of modules: each of `names` is a text, and what stands for it."""
    made = {}
    for name, tensor in state.items():
        for ours, theirs in names.items():
            name = name.replace(ours, theirs)
        made[name] = tensor
    return made


def asked(path, answers=S1):
    return {one.name: [choice.value for choice in one.choices] for one in preview(path, answers=answers).report.asked}


def same(path, model, answers=S1):
    ours = load(path, answers=answers).model
    assert (ours(*PADDED) - model(*PADDED)).abs().max() < 1e-5
    return True


PARTS = {  # names of one's own -> what answers them
    "out of two kinds": ({"self_attn.w_o": "self_attn.glue", "cross_attn.w_o": "cross_attn.join"},
                         {"out_proj": "glue,join"}),
    "out beside the attention": ({"self_attn.w_o": "glued", "cross_attn.w_o": "cross_glued"},
                                 {"out_proj": "glued,cross_glued"}),
    "all four": ({"w_q": "a", "w_k": "b", "w_v": "c", "w_o": "d"},
                 {"q_proj": "a", "k_proj": "b", "v_proj": "c", "out_proj": "d"}),
    "attentions": ({"self_attn": "mixer", "cross_attn": "reader"}, {"self_attn": "mixer", "cross_attn": "reader"}),
    "feed-forward": ({"ff.linear1": "ff.wide", "ff.linear2": "ff.narrow"},
                     {"up_proj": "ff.wide", "down_proj": "ff.narrow"}),
    "one of it": ({"ff.linear2": "ff.narrow"}, {"down_proj": "ff.narrow"}),
    "norms": ({"norm1": "after_self", "norm3": "after_ff", "norm2": "after_cross"},
              {"norms": "after_self,after_cross,after_ff"}),
}  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
def test_a_part_of_a_layer_under_another_name_is_asked_about(tmp_path, name):
    names, answers = PARTS[name]
    model = article()
    state = renamed(model.state_dict(), names)
    if name == "norms":  # the encoder's second is behind its feed-forward network
        state = {n.replace("after_cross", "after_ff") if n.startswith("enc") else n: t for n, t in state.items()}
    path = saved(tmp_path / "m.pt", state)
    found = asked(path, {one: value for one, value in S1.items() if one != "n_heads"})
    assert {*answers, "n_heads"} <= found.keys() - {"ignored"} == found.keys()
    assert all({*value.split(",")} <= {*",".join(found[part]).split(",")} for part, value in answers.items())
    assert same(path, model, S1 | answers)
    given = next(iter(answers.values())).split(",")[0]
    with pytest.raises(QuestionsError):  # nor can it be left out
        load(path, answers=S1 | {"ignored": f"*.{given}.*"})


def joint(state, by_head):
    """A state with one map for queries, keys and values, or across for keys and values."""
    made = {name: tensor for name, tensor in state.items() if not any(f".w_{one}." in name for one in "qkv")}
    for name in (name for name in state if ".w_q." in name):
        parts = "qkv" if "self_attn" in name else "kv"
        three = [state[name.replace("w_q", f"w_{one}")] for one in parts]
        heads = [part.view(4, -1, *part.shape[1:]) for part in three]
        made |= {name: state[name]} if parts == "kv" else {}
        whole = torch.stack(heads, 1).flatten(0, 2) if by_head else torch.cat(three)
        made[name.replace("w_q", f"all_{parts}")] = whole
    return made


@pytest.mark.parametrize("end", ["", "/by_head"])
def test_the_order_of_maps_in_one_is_asked_about(tmp_path, end):
    model = article()
    path = saved(tmp_path / "m.pt", joint(model.state_dict(), bool(end)))
    answers = {"qkv_proj": f"all_qkv{end}", "kv_proj": f"all_kv{end}"}
    assert asked(path) == {f"{one}_proj": [f"all_{one}", f"all_{one}/by_head"] for one in ("qkv", "kv")}
    assert same(path, model, S1 | answers)


LLAMA = {"decoder_layers": "layers", "norms": "attention_norm,ffn_norm", "gate_proj": "feed_forward.w1",
         "up_proj": "feed_forward.w3", "positions": "rotary", "rotary_pairs": "neighbours", "encoder_norm": "norm",
         "src_table": "tok_embeddings.weight", "norm_kind": "rms", "norm_eps": 1e-5}  # fmt: skip


def test_a_gate_rotary_pairs_and_shared_heads_are_asked_about_or_seen(tmp_path):
    """Those of a card, with an output of its own, so that the card is not recognised."""
    run, state = replace(LLAMA2C, copies={}), State()
    torch.manual_seed(0)
    expected = run(state, None, PADDED[1])
    path, answers = (
        saved(tmp_path / "m.pt", dict(state)),
        PRE | LLAMA | {"activation": "silu", "scale_embedding": False},
    )
    found = asked(path, {})
    assert "feed_forward.w1" in found["gate_proj"]
    assert "rotary" in found["positions"]
    ours = load(path, answers=answers)
    assert (ours.config.n_kv_heads, ours.config.gated) == (2, True)
    assert (ours.model(PADDED[1], PADDED[1]) - expected).abs().max() < 1e-5


def test_a_norm_behind_the_embeddings_is_asked_about(tmp_path):
    run, state = replace(TUNED, embedding_norms=("encoder.emb_scale", "decoder.emb_scale")), State()
    torch.manual_seed(0)
    expected = run(state, *PADDED)
    path = saved(tmp_path / "m.pt", dict(state))
    answers = {f"{side}_embedding_norm": f"{side}.emb_scale" for side in ("encoder", "decoder")}
    assert answers.keys() <= asked(path).keys()
    ours = load(path, answers=POST | answers | {"positions": "sinusoidal"}).model
    assert (ours(*PADDED) - expected).abs().max() < 1e-5


@pytest.mark.parametrize(("norm", "first"), [("add_norms.{}.norm", 1), ("addnorm{}", 0)])
def test_norms_are_told_apart_by_their_numbers(tmp_path, norm, first):
    model = article()
    names = {f"norm{i}.": f"{norm.format(i - 1 + first)}!" for i in (1, 2, 3)}
    state = {name.replace("!", "."): t for name, t in renamed(model.state_dict(), names).items()}
    assert same(saved(tmp_path / "m.pt", state), model)


def test_one_head_is_concluded_only_where_no_matrix_is_left(tmp_path):
    model = article()
    state = {name: tensor for name, tensor in model.state_dict().items() if ".w_o." not in name}
    report = preview(saved(tmp_path / "m.pt", state), answers={}).report
    heads = next(one for one in report.fields if one.name == "n_heads")
    assert (heads.how, heads.value, heads.is_assumed) == ("inferred", 1, True)
    assert "ignored" not in {one.name for one in report.asked}
    extra = {f"encoder.layers.{i}.self_attn.relative.weight": torch.ones(16, 16) for i in range(2)}
    path = saved(tmp_path / "n.pt", state | extra)
    assert asked(path)["out_proj"] == ["relative", "none"]
    report = preview(path, answers=S1 | {"out_proj": "none"}).report
    (question,) = report.asked
    assert (question.name, question.choices) == ("ignored", ())  # listed, and not offered
    assert "encoder.layers.0.self_attn.relative.weight [16, 16]" in question.evidence
    answers = S1 | {"out_proj": "none", "ignored": "*.relative.*"}
    assert load(path, answers=answers).config.n_heads == 4


TIED = [((17, 19), False), ((19, 19), False), ((19, 19), True)]  # sizes, and whether all three tables are one


@pytest.mark.parametrize(("vocabs", "three"), TIED)
def test_a_table_that_is_shared_is_read_from_the_metadata_or_asked_about(tmp_path, vocabs, three):
    """Whichever of its names a file kept."""
    model = article(vocabs)
    model.fc_out.weight = model.decoder.embedding.weight
    if three:
        model.encoder.embedding.weight = model.decoder.embedding.weight
    whole, path = model.state_dict(), tmp_path / "n.pt"
    save_model(model, str(tmp_path / "m.safetensors"))
    assert same(tmp_path / "m.safetensors", model)
    source, target = "encoder.embedding.weight", "decoder.embedding.weight"
    gone = {"fc_out.weight", *([source] if three else [])}
    answers = {"tie_output": True} | ({"src_table": target} if three else {})
    saved(path, {name: one for name, one in whole.items() if name not in gone})
    assert answers.keys() <= asked(path).keys()
    assert same(path, model, S1 | answers)
    if vocabs != (19, 19):
        return
    tables = ["src_table", "tgt_table"][1 - three :]
    saved(path, {name: one for name, one in whole.items() if name not in {target, *([source] if three else [])}})
    found = asked(path)
    assert {"src_table", "tgt_table"} & found.keys() == {*tables}
    assert "fc_out.weight" in found["tgt_table"]
    assert same(path, model, S1 | dict.fromkeys(tables, "fc_out.weight"))
    if not three:  # a model with one vocabulary and an output of its own is possible, too
        config = load(path, answers=S1 | {"tgt_table": source}).config
        assert (config.shared_vocab, config.tie_output) == (True, False)


BESIDE = {  # by the prefix that the model's names have
    "model.": {"criterion.weight": torch.ones(19)},
    "module._orig_mod.": {
        "num_batches_tracked": torch.tensor(7),
        "step": torch.tensor([3]),
        "model.epoch": torch.tensor(2),
    },
    "net.inner.": {"model.causal": torch.ones(4, 4, dtype=torch.bool)},
    "": {"train_loss.sum": torch.tensor(1.0), "train_loss.n": torch.tensor(3)},
}


@pytest.mark.parametrize("prefix", BESIDE)
def test_a_prefix_is_found_by_what_a_model_needs(tmp_path, prefix):
    model = article()
    state = {prefix + name: tensor for name, tensor in model.state_dict().items()}
    path = saved(tmp_path / "m.pt", state | BESIDE[prefix])
    floats = [name for name, tensor in BESIDE[prefix].items() if tensor.is_floating_point()]
    assert asked(path) == ({"ignored": floats} if floats else {})
    assert same(path, model, S1 | ({"ignored": ",".join(floats)} if floats else {}))


@pytest.mark.parametrize(("one", "other"), [("", "ema."), ("model.", "best_model.")])
def test_which_of_two_models_in_a_file_is_asked(tmp_path, one, other):
    model, second = article(), at_random(article(), seed=1)
    content = {one: model.state_dict(), other: second.state_dict()}
    if one:  # in dictionaries of their own
        path = saved(tmp_path / "m.pt", {name.rstrip("."): state for name, state in content.items()})
    else:
        flat = {prefix + name: tensor for prefix, state in content.items() for name, tensor in state.items()}
        path = saved(tmp_path / "m.pt", flat)
    assert set(asked(path)["prefix"]) == {one or "none", other}
    assert same(path, model, S1 | {"prefix": one or "none"})
    assert same(path, second, S1 | {"prefix": other})
    said = "prefix: no tensor has a name that begins with 'none of it'"
    refusal(lambda: load(path, answers=S1 | {"prefix": "none of it"}), said)


def test_layers_and_tables_that_are_there_twice_are_asked_about(tmp_path):
    model, other = article(), at_random(article(), seed=1)
    again = {name.replace("encoder.layers", "encoder_layers"): tensor + 1
             for name, tensor in other.state_dict().items() if name.startswith("encoder.layers.")}  # fmt: skip
    path = saved(tmp_path / "m.pt", model.state_dict() | again | {"src_embed.weight": torch.ones(17, 16)})
    found = asked(path)
    assert found["encoder_layers"] == ["encoder.layers", "encoder_layers"]
    assert found["src_table"] == ["encoder.embedding.weight", "src_embed.weight"]
    answers = {"encoder_layers": "encoder.layers", "src_table": "encoder.embedding.weight"}
    assert same(path, model, S1 | answers | {"ignored": "encoder_layers.*,src_embed.weight"})
    second = "encoder.layers.0.self_attn.W_q.weight"
    path = saved(tmp_path / "n.pt", model.state_dict() | {second: torch.ones(16, 16)})
    refusal(lambda: load(path, answers=S1), "would both become")
    assert same(path, model, S1 | {"ignored": second})


NORMS = {"transformer.encoder.norm": "after_enc", "transformer.decoder.norm": "after_dec", "generator.bias": "shift"}
OF_STACKS = {"encoder.layers": "my.reader", "decoder.layers": "my.writer"}
PLACES = ["my.reader", "my.writer", "none"]
ELSEWHERE = {  # what is renamed, what is then asked, and what answers it
    "norms behind the layers": (TorchModel, NORMS, {
        "encoder_norm": ["after_enc", "after_dec", "none"], "decoder_norm": ["after_enc", "after_dec", "none"],
        "output_bias": ["shift", False]},
        {"encoder_norm": "after_enc", "decoder_norm": "after_dec", "output_bias": "shift"}),
    "layers": (article, OF_STACKS, {"encoder_layers": PLACES, "decoder_layers": PLACES},
               {"encoder_layers": "my.reader", "decoder_layers": "my.writer"}),
    "layers of one stack": (article, {"decoder.layers": "my.writer"}, {"decoder_layers": PLACES[1:]},
                            {"decoder_layers": "my.writer"}),
}  # fmt: skip


@pytest.mark.parametrize("name", ELSEWHERE)
def test_parts_in_places_of_ones_own_are_asked_about(tmp_path, name):
    make, names, expected, answers = ELSEWHERE[name]
    model = at_random(make())
    path = saved(tmp_path / "m.pt", renamed(model.state_dict(), names))
    found = asked(path)
    assert {part: found[part] for part in expected} == expected
    first, *others = answers.items()
    again = asked(path, S1 | dict([first]))
    assert all(first[1] not in again[part] for part, _ in others if name == "layers")
    assert same(path, model, S1 | answers)


def test_a_template_of_layers_can_be_left_out(tmp_path):
    model = at_random(TorchModel())
    layer = model.transformer.get_submodule("encoder.layers.0").state_dict()
    path = saved(tmp_path / "m.pt", model.state_dict() | {f"template.{one}": layer[one] + 1 for one in layer})
    assert asked(path) == {"ignored": ["template.*"]}
    assert same(path, model, S1 | {"ignored": "template.*"})


def test_what_was_left_out_stays_so_while_more_is_asked(tmp_path):
    path = saved(tmp_path / "m.pt", article().state_dict() | {"a.x": torch.ones(3), "b.x": torch.ones(3)})
    assert asked(path)["ignored"] == ["a.x", "b.x"]
    report = preview(path, answers=S1 | {"ignored": "b.x"}).report
    (question,) = [one for one in report.fields if one.name == "ignored"]
    assert [choice.value for choice in question.choices] == ["b.x", "a.x"]


@pytest.mark.parametrize("formula", [True, False])
def test_a_second_table_of_positions_is_asked_about(tmp_path, formula):
    model, own = at_random(TorchModel()), "positional_encoding.pos_embedding"
    if not formula:
        model.positional_encoding.pos_embedding += 1
    path = saved(tmp_path / "m.pt", model.state_dict() | {"decoder_pos.weight": torch.randn(32, 16)})
    answers = S1 | {"positions": "sinusoidal" if formula else own}
    assert asked(path)["positions"] == [answers["positions"], "decoder_pos.weight"]
    assert asked(path, answers) == {"ignored": ["decoder_pos.weight"]}
    assert same(path, model, answers | {"ignored": "decoder_pos.weight"})


def test_a_norm_behind_one_stack_only_is_refused_by_name(tmp_path):
    state = at_random(TorchModel()).state_dict()
    some = {name: tensor for name, tensor in state.items() if not name.startswith("transformer.decoder.norm")}
    with pytest.raises(CheckpointError, match=r"transformer.encoder.norm.weight' is a norm behind the last layer"):
        preview(saved(tmp_path / "m.pt", some), answers=S1)
    path = saved(tmp_path / "n.pt", some | {"ends": torch.ones(16)})
    refusal(lambda: preview(path, answers=S1 | {"decoder_norm": "none"}), "program needs both or neither")


@pytest.mark.parametrize(("zeros", "start"), [(1, 1), (0, 1), (2, 0)])
def test_sinusoids_moved_by_some_rows_are_said_and_asked_about(tmp_path, zeros, start):
    model, own = at_random(TorchModel()), "positional_encoding.pos_embedding"
    model.positional_encoding.pos_embedding.data = sinusoids(32, 16).transpose(0, 1)
    table = torch.cat([torch.zeros(zeros, 16), sinusoids(32 - zeros + start, 16)[0, start:]])[:, None]
    path = saved(tmp_path / "m.pt", model.state_dict() | {own: table})
    choices = ["learned"] if start else ["learned", "sinusoidal"]
    assert asked(path) == {"positions": choices}
    for answer in choices:
        assert load(path, answers=S1 | {"positions": answer}).config.positions == answer
    assert start or same(path, model, S1 | {"positions": "sinusoidal"})


def test_an_output_that_is_the_sources_table_cannot_be_tied_to_the_targets(tmp_path):
    model = article((19, 19))
    model.fc_out.weight = model.encoder.embedding.weight
    path = saved(tmp_path / "m.pt", model.state_dict())
    with pytest.raises(CheckpointError, match=r"tie_output: the output layer .* is not the target's"):
        load(path, answers=S1 | {"tie_output": True})
    assert same(path, model)


STACK = "transformer_encoder.layers"
FORMULA = POST | IDS | {"scale_embedding": True, "positions": "sinusoidal"}


class Causal(nn.Module):
    """A language model of encoder layers, under the names that PyTorch's example gives, or others."""

    def __init__(self, table="encoder", output="decoder", norm=False, vocab=17, width=16):
        super().__init__()
        self.names = table, output
        setattr(self, table, nn.Embedding(vocab, width))
        layer = nn.TransformerEncoderLayer(width, 4, 24, 0.0, batch_first=True)
        norm = nn.LayerNorm(width) if norm else None
        self.transformer_encoder = nn.TransformerEncoder(layer, 2, norm=norm, enable_nested_tensor=False)
        setattr(self, output, nn.Linear(width, vocab))

    def forward(self, ids):
        table, output = (getattr(self, name) for name in self.names)
        x = table(ids) * math.sqrt(16) + sinusoids(32, 16)[:, : ids.size(1)]
        hidden = torch.ones(ids.size(1), ids.size(1), dtype=torch.bool).triu(1)
        return output(self.transformer_encoder(x, mask=hidden))


@pytest.mark.parametrize(("table", "output", "norm"), [("encoder", "decoder", False), ("words", "again", True)])
def test_a_causal_language_model_of_encoder_layers(tmp_path, table, output, norm):
    model = at_random(Causal(table, output, norm))
    path = saved(tmp_path / "m.pt", model.state_dict())
    found = asked(path, FORMULA)
    assert found["decoder_layers"] == [STACK, "none"]  # names do not decide it
    assert "ignored" not in found
    names = {"src_table": f"{table}.weight", "output_table": f"{output}.weight"}
    for more in ({}, {"encoder_layers": "none"}):
        ours = load(path, answers=FORMULA | names | {"decoder_layers": STACK} | more).model
        ids = torch.tensor([[5, 3, 9, 7]])
        assert (ours(ids, ids) - model(ids)).abs().max() < 1e-5
    read_as_encoder = FORMULA | {"src_table": names["src_table"], "decoder_layers": "none"}
    assert asked(path, read_as_encoder) == {"ignored": []}  # an output is not needless
    with pytest.raises(QuestionsError):
        load(path, answers=read_as_encoder)
    for extra, shape in (("fc.weight", (5, 16)), ("pooler.dense.weight", (16, 16))):
        state = {name: tensor for name, tensor in model.state_dict().items() if not name.startswith(output)}
        state = {name.replace(table, "embedding") if name.startswith(table) else name: state[name] for name in state}
        other = saved(tmp_path / "other.pt", state | {extra: torch.ones(shape)})
        assert asked(other, FORMULA) == {"ignored": [extra]}  # another head is no output


OUTSIDE = {
    "embed_norm.weight": ((15,), "a norm"), "segment_embedding.weight": ((2, 16), "an embedding"),
    "token_type_table.weight": ((2, 16), "an embedding"), "alibi_slopes": ((4,), "positions that are added"),
    "rel_pos_bias.weight": ((32, 4), "positions that are added"), "rotary_emb.inv_freq": ((2,), "rotary"),
}  # fmt: skip


def test_what_takes_part_outside_the_layers_is_named_and_not_offered(tmp_path):
    state = at_random(TorchModel()).state_dict() | {"aux_head.weight": torch.ones(5, 16)}
    state |= {name: torch.ones(shape) for name, (shape, _) in OUTSIDE.items()}
    report = preview(saved(tmp_path / "m.pt", state), answers=FORMULA).report
    (question,) = (one for one in report.asked if one.name == "ignored")
    assert [one.value for one in question.choices] == ["aux_head.weight"]
    assert all(f"{name}: {what}" in question.evidence for name, (_, what) in OUTSIDE.items())


@pytest.mark.parametrize(
    ("norm", "dim"), [(weight_norm, 0), (parametrizations.weight_norm, 1), (parametrizations.weight_norm, None)]
)
@pytest.mark.filterwarnings("ignore")
def test_weight_norm_is_put_together(tmp_path, norm, dim):
    model = article()
    norm(model.encoder.layers[0].self_attn.w_q, dim=dim)
    norm(model.fc_out, dim=dim)
    path = saved(tmp_path / "m.pt", model.state_dict())
    assert asked(path) == {}
    assert same(path, model)
    assert "fc_out.weight" in str(preview(path, answers=S1).report.notes[0])


Q = "encoder.layers.0.self_attn.w_q"
IN_PARTS = {
    "LoRA": ({"lora_A.weight": (2, 16), "lora_B.weight": (16, 2)}, "an adapter"),
    "PEFT": ({"base_layer.weight": (16, 16), "lora_A.default.weight": (2, 16)}, "an adapter"),
    "GPTQ": ({"qweight": (2, 16), "qzeros": (1, 2), "scales": (1, 16)}, "a quantised weight"),
    "bitsandbytes, 8 bits": ({"SCB": (16,)}, "a quantised weight"),
    "bitsandbytes, 4 bits": ({"weight.absmax": (4,), "weight.quant_map": (16,)}, "a quantised weight"),
    "spectral": ({"weight_orig": (16, 16), "weight_u": (16,), "weight_v": (16,)}, "spectral"),
    "spectral, new": ({"parametrizations.weight.original": (16, 16)}, "a parametrised weight"),
    "pruned bias": ({"bias_orig": (16,), "bias_mask": (16,)}, "pruning"),
}


def test_weights_in_other_parts_are_refused_by_name(tmp_path):
    state, path = article().state_dict(), tmp_path / "m.pt"
    for parts, what in IN_PARTS.values():
        made = {f"{Q}.{one}": torch.ones(shape) for one, shape in parts.items()}
        said = rf"tensor '{Q}.* is part of .*{what}.* not a plain weight"
        refusal(lambda made=made: preview(saved(path, state | made)), said)
    small = {f"{Q}.weight": torch.ones(16, 16, dtype=torch.int8)}
    refusal(lambda: preview(saved(path, state | small)), "a quantised weight.* not a plain weight")


def test_norms_may_be_of_two_kinds(tmp_path):
    """Without biases, or with the names of both."""
    whole = article().state_dict()
    path = saved(tmp_path / "m.pt", {n: t for n, t in whole.items() if "norm" not in n or not n.endswith("bias")})
    assert asked(path)["norm_kind"] == ["rms", "layer"]
    config = load(path, answers=S1 | {"norm_kind": "rms", "norm_eps": 1e-6}).config
    assert (config.norm_kind, config.norm_bias) == ("rms", False)
    mixed = renamed(at_random(Annotated()).state_dict(), {"encoder.norm.a_2": "encoder.norm.weight"})
    path = saved(tmp_path / "n.pt", mixed)
    assert [*asked(path, PRE)] == ["norm_kind", "norm_eps"]
