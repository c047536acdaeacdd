"""Pages on models whose positions, attentions, norms or ids are not the paper's are drawn, and say what differs."""

import base64
from functools import partial

import numpy as np
import pytest

from glassformer.positions import PositionsLook, position_controls
from glassformer.runs import loading
from tests.pages.conftest import ATTENTION, CHECKPOINTS, FORCING, INSIDE, MASKS, POSITIONS, STEP
from tests.pages.reading import charts_of, choose, figure, numbers, opened, payload, told, told_or_noted, view, z_of
from tests.pages.test_pseudo_language import complaints, data_of_models
from tests.pseudo_language import words_of
from tests.transformer.featured import FEATURED, featured
from tests.transformer.one_stack import alone
from transformer.analysis.positions import distance_bias
from transformer.runs.running import replay

text = partial(told, kinds=("markdown", "caption", "info", "warning", "latex"))


GPT_2 = {"pad_id": None, "unk_id": None, "bos_id": None, "prepend_source_bos": False}
MODELS = {
    "gemma": ("decoder", {"norm": "both", "norm_kind": "rms", "gated": True, "activation": "gelu_tanh",
                          "logit_cap": 3.0, "bias": False}),
    "neox": ("decoder", {"parallel_residual": True, "activation": "gelu", "tie_output": False}),
    "gpt": ("decoder", {"activation": "gelu_tanh", "further_eos_ids": (9,), "banned_ids": (7,), "min_new": 5,
                        "no_repeat_ngram": 2, "repetition_penalty": 1.5, "max_new": 6, "forced_end_id": 9, **GPT_2}),
    "bert": ("encoder", {"norm": "post", "final_norm": False, "embedding_norm": True, "n_token_types": 2,
                         "mlm_head": True, "output_bias": True, "activation": "gelu"}),
    "bare": ("encoder", {"norm_kind": "none", "norm": "post", "final_norm": False, "residual": False, "n_heads": 1,
                         "activation": "none"}),
    "tutorial": ("decoder", {"norm_kind": "deviation", "norm_bias": False, "forced_ids": (9,)}),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("featured")
    for name in FEATURED:
        featured(name, made)
    for name, (stack, changes) in MODELS.items():
        alone(stack, made, **changes).folder.rename(made / name)
    return made


@pytest.fixture
def open_model(folder, open_page, monkeypatch):
    monkeypatch.setenv(loading.ENVIRONMENT, str(folder))
    return lambda name, page, **parameters: open_page(page, model=name, src="ba lo mi", **parameters)


PARTS = [
    (STEP, {}),
    (CHECKPOINTS, {}),
    (FORCING, {"ref": "the fox"}),
    *((ATTENTION, {"panel": panel}) for panel in ("overview", "head", "flow", "walk", "table")),
    *((MASKS, {"masks": panel}) for panel in ("masks", "one_row", "checks")),
    *((INSIDE, {"inside": panel}) for panel in ("model", "stream", "lens", "ffn", "pieces")),
    *(
        (POSITIONS, {"positions": panel})
        for panel in ("table", "similarity", "shift", "sentence", "rotations", "pair", "distance")
    ),
]
DAILY = ("relative", "windows", "bare", "gemma", "bert")
# Each part of three of them, and positions of all; in the deep tests all of all models.
SOME = [
    [part for n, part in enumerate(PARTS) if part[0] == POSITIONS or (n - place) % len(DAILY) < 3]
    for place in range(len(DAILY))
]
DEEP = [pytest.param(name, PARTS, marks=pytest.mark.deep) for name in (*FEATURED, *MODELS)]


@pytest.mark.parametrize(("name", "parts"), [*zip(DAILY, SOME, strict=True), *DEEP])
def test_every_part_of_every_page_is_drawn(open_model, name, parts):
    for page, parameters in parts:
        test = open_model(name, page, **parameters)
        assert not test.error, (page, parameters, test.error)


MODEL = {"inside": "model"}
CAPPED = "3. The score", r"cdot 0.3", "tanh", "after normalisation or rotation by position"
MADE_SO = "RMS norm", "multiplied by 0.3", "capped at ±5", "a decoder query can see, layer by layer: 3, ∞, 2"


@pytest.mark.parametrize(
    ("name", "page", "view", "said"),
    [
        ("rotary", POSITIONS, {}, ["has rotary positions", "In each head, 4 of the 4 dimensions rotate"]),
        ("relative", POSITIONS, {}, ["has relative positions"]),
        ("no positions", POSITIONS, {}, ["has no positional encoding: it does not see the order of its tokens"]),
        ("relative", ATTENTION, {"kind": "encoder"}, ["q·k is not divided by √d_head"]),
        ("windows", ATTENTION, {}, MADE_SO),
        ("windows", ATTENTION, {"panel": "head"}, ["every layer closes it"]),
        ("windows", ATTENTION, {"panel": "walk", "layer": 1, "head": 1, "query": 3, "key": 1}, CAPPED),
        ("alibi", ATTENTION, {"panel": "walk", "layer": 1, "head": 1}, ["replaces all other scores with −1 × 10⁹"]),
        ("windows", MASKS, {}, ["have windows"]),
        ("alibi", MASKS, {}, ["replaces the scores of closed keys with −1 × 10⁹"]),
        ("gpt", MASKS, {"with": "mi"}, ["This model has no padding token to fill a batch with"]),
        ("gpt", MASKS, {"masks": "checks"}, ["no padding token, so there is nothing to check"]),
        ("gemma", INSIDE, MODEL, ["leaves out the norm that is applied to each sub-layer's output", "RMS norms",
                                  "has a gate", "GELU (tanh)", "between −3 and 3", "No layer has a bias"]),
        ("neox", INSIDE, MODEL, ["in this model both read the same input"]),
        ("bare", INSIDE, MODEL, ["This model has no norms.", "but this model has none",
                                 "There is no residual connection", "each sub-layer's output replaces the stream."]),
        ("bert", INSIDE, MODEL, ["leaves out the norm after the embedding. The diagram leaves out the token types.",
                                 "always uses the first of the 2 types"]),
        ("tutorial", INSIDE, MODEL, ["unbiased standard deviation", "These parts have biases: queries, keys and "
                                     "values, the output projection of attention, the feed-forward network."]),
        ("gpt", INSIDE, MODEL, ["No sequence of 2 tokens occurs twice in an output", "repetition penalty"]),
    ],
)  # fmt: skip
def test_a_page_says_what_is_not_as_in_the_paper(open_model, name, page, view, said):
    found = text(open_model(name, page, **view))
    assert [one for one in said if one not in found] == []


@pytest.mark.parametrize("name", ["halves", "fairseq"])
def test_sinusoids_of_another_layout_are_drawn_in_turns(open_model, name):
    test = open_model(name, POSITIONS, apart=0)
    table = opened(name).model.encoder.embedding.positions.table.numpy()
    drawn = z_of(test, "position_table")
    np.testing.assert_array_equal(np.hstack([drawn[:, 0::2], drawn[:, 1::2]]), table)
    other = "also sinusoids, but from a different formula"
    assert (other in text(test)) == ("the table follows the formula" not in text(test)) == (name == "fairseq")


def test_what_rules_of_decoding_do_is_marked_and_norms_that_there_are_not_are_not_drawn(open_model):
    first, last = (figure(open_model("gpt", STEP, step=step), "candidates") for step in (1, 6))
    assert {"⊘", "↓"} <= set("".join(first["layout"]["yaxis"]["ticktext"]))
    assert "forced by the model's settings" in str(last["layout"]["meta"])
    assert "stream_strip" not in charts_of(open_model("bare", INSIDE, inside="stream"))


# ---------------------------------------------------------------- groups of heads, windows, a prompt before the output


@pytest.fixture
def windows(open_model):
    return lambda **parameters: open_model("windows", ATTENTION, max=4, **parameters)


def run():
    checkpoint = opened("windows")
    return checkpoint.run(checkpoint.query("ba lo mi", max_new=4))


def dotted(drawn):
    """Where lines are that separate the prompt from the output."""
    return [shape["y0"] for shape in drawn["layout"]["shapes"] if shape["line"].get("dash") == "dot"]


def test_all_heads_have_their_layers_masks_groups_and_the_end_of_the_prompt(windows):
    test, trace = windows(), run()
    drawn = figure(test, "overview_decoder")
    assert trace.masks["decoder"].ndim == 3  # windows: each layer has its own
    packed = drawn["layout"]["meta"]["grid"]
    n = len(packed["queries"])
    codes = np.frombuffer(base64.b64decode(packed["codes"]), np.uint8).reshape(3, n, 3, n)
    np.testing.assert_array_equal(codes[:, :, 0] != 255, [trace.mask("decoder", layer) for layer in range(3)])
    assert [note["text"] for note in drawn["layout"]["annotations"]] == ["K, V 1"]
    assert dotted(drawn)[0] == trace.first_row - 0.5
    caption = payload(test, "overview_decoder")["caption"]
    assert "Heads under one bracket share" in caption
    assert "separate the prompt from the output" in caption


def test_one_map_says_with_whom_its_head_shares_and_where_the_prompt_ends(windows):
    drawn, first = figure(windows(panel="head", layer=1, head=2), "head_map"), run().first_row
    assert drawn["layout"]["title"]["subtitle"]["text"] == "All 3 heads share one key-value head"
    assert dotted(drawn) == [first - 0.5, 0]
    words = figure(windows(panel="head", layer=1, head=2, words=1), "head_map")
    assert 0 < dotted(words)[0] <= first - 0.5  # rows are words there


@pytest.mark.parametrize("part", [{"panel": "overview"}, {"panel": "head", "head": 2}])
def test_what_is_said_of_groups_and_windows_is_said_whole(windows, part):
    test = windows(layer=1, lang="qps", **part)
    pieces = opened("windows").src_tokenizer.pieces
    assert complaints(test, words_of("windows", "ba lo mi", *pieces) | data_of_models()) == []


# ---------------------------------------------------------------- positions inside attention


@pytest.fixture
def positions(open_model):
    return lambda name, part="table", **parameters: open_model(name, POSITIONS, positions=part, **parameters)


def test_layers_with_other_bases_are_chosen_and_the_one_that_does_not_turn_says_so(positions):
    test = positions("windows")
    assert "Without scaling for longer texts, pair i turns by 10,000^(−i/" in told_or_noted(test)
    options = test.selectbox(key=position_controls.LAYERS).options
    assert options == ["Layers 1, 3: window, base 10,000", "Layer 2: no rotation"]
    choose(test, position_controls.LAYERS, 1)
    assert "Layer 2 ignores positions" in told_or_noted(test)
    assert view(test).layer == 1


@pytest.mark.parametrize("name", ["rotary", "windows"])
def test_the_score_of_the_sentence_stands_on_its_curve(positions, name):
    test, checkpoint = positions(name, "sentence", layer=3, head=2, query=3, key=2), opened(name)
    site = "decoder.2.self_attn.scores"
    own = float(replay(checkpoint, checkpoint.run("ba lo mi"), [site])[site][1, 2, 1])
    cap = checkpoint.config.score_cap
    before = own if cap is None else cap * np.arctanh(own / cap)
    curve, ring = figure(test, "rotary_scores")["data"]
    place = numbers(curve["x"]).tolist().index(-1)
    found = [numbers(curve["y"])[place], numbers(ring["y"])[0]]
    assert found == pytest.approx([before, before], abs=1e-4)
    assert ("soft cap" in told_or_noted(test)) == (cap is not None)


@pytest.mark.parametrize(("name", "side", "stack"), [("alibi", "target", "decoder"), ("relative", "source", "encoder")])
def test_a_bias_is_drawn_by_distance(positions, name, side, stack):
    test, found = positions(name, side=side, head=2, layer=1), distance_bias(opened(name).model, stack, most=23)
    np.testing.assert_allclose(z_of(test, "bias_map"), found.bias, atol=1e-6)
    front = figure(test, "bias_curves")["data"][-1]  # what is looked at comes last, on top
    assert front["name"] == "head 2"
    np.testing.assert_allclose(numbers(front["y"]), found.bias[1], atol=1e-6)
    columns = figure(test, "bias_map")["layout"]["meta"]["cells"]["columns"]
    assert ("bucket" in columns[0]) == (name == "relative")
    assert ("Cross-attention does not use positions" in told_or_noted(test)) == (name == "relative")


@pytest.mark.parametrize(
    ("name", "part", "why"), [("rotary", "similarity", "no part “Similarity”"), ("alibi", "pair", "no part “One pair”")]
)
def test_a_part_without_meaning_says_why(positions, name, part, why):
    test = positions(name, part)
    assert why in told_or_noted(test)
    assert view(test).of(PositionsLook).positions_panel == "table"
