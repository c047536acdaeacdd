"""Pages on models with other norms, gates, heads and ids than the paper's are drawn truly, or say what not."""

import pytest

from glassformer.runs import loading
from glassformer.step import step_pictures
from tests.pages.conftest import ATTENTION, INSIDE, MASKS, POSITIONS, STEP
from tests.pages.reading import charts_of, figure, told_or_noted
from tests.transformer.one_stack import alone

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


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("further")
    for name, (stack, changes) in MODELS.items():
        alone(stack, made, **changes).folder.rename(made / name)
    return made


@pytest.fixture
def page(folder, open_page, monkeypatch):
    monkeypatch.setenv(loading.ENVIRONMENT, str(folder))
    return lambda name, script, **parameters: open_page(script, model=name, **({"src": "ba lo mi"} | parameters))


SOME = [pytest.param(name, marks=[pytest.mark.deep] * (name not in ("gemma", "bert", "bare"))) for name in MODELS]


@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("part", ["model", "stream", "lens", "ffn", "pieces"])
def test_every_part_of_inside_opens(page, name, part):
    test = page(name, INSIDE, inside=part)
    assert not test.error
    encoder = MODELS[name][0] == "encoder"
    strip = "stream_added" if name == "bare" else "stream_strip"  # which has no norms
    expected = {"model": "model_diagram", "stream": strip, "lens": None if encoder else "lens_map",
                "ffn": "ffn_map" if encoder else "ffn_effect"}.get(part)  # fmt: skip
    assert expected is None or expected in charts_of(test)


@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("script", [STEP, ATTENTION, POSITIONS, MASKS])
def test_every_other_page_opens(page, name, script):
    assert not page(name, script).error


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gemma", ["leaves out the norm that is applied to each sub-layer's output", "RMS norms", "has a gate",
                   "GELU (tanh)", "between −3 and 3", "No layer has a bias"]),
        ("neox", ["in this model both read the same input"]),
        ("bert", ["leaves out the norm after the embedding. The diagram leaves out the token types.",
                  "always uses the first of the 2 types"]),
        ("tutorial", ["unbiased standard deviation", "These parts have biases: queries, keys and values, the output "
                      "projection of attention, the feed-forward network."]),
        ("gpt", ["No sequence of 2 tokens occurs twice in an output", "repetition penalty"]),
    ],
)  # fmt: skip
def test_features_are_named_and_what_a_diagram_cannot_draw(page, name, said):
    found = told_or_noted(page(name, INSIDE, inside="model"))
    assert [one for one in said if one not in found] == []


def test_a_model_without_padding_stands_alone_on_the_masks_page(page):
    test = page("gpt", MASKS, **{"with": "mi"})
    assert "This model has no padding token to fill a batch with" in told_or_noted(test)
    test = page("gpt", MASKS, masks="checks")
    assert "no padding token, so there is nothing to check" in told_or_noted(test)
    assert not test.error


def test_what_rules_of_decoding_do_is_marked(page):
    test = page("gpt", STEP, step=1)
    spec = figure(test, step_pictures.candidates.key)
    marks = "".join(spec["layout"]["yaxis"]["ticktext"])
    assert {"⊘", "↓"} <= set(marks)
    last = page("gpt", STEP, step=6)
    assert "forced by the model's settings" in str(figure(last, step_pictures.candidates.key)["layout"]["meta"])
