"""The error of a change by its amount is what two passes differ by, and its cost what a loop over all cells counts."""

import numpy as np
import pytest
import torch

from glassformer.extensions.what_if.interventions import KINDS
from glassformer.extensions.what_if.sweeps import MOST, amounts, costs, costs_in_words, error_plot, sweep
from tests.pages.reading import opened
from transformer import run
from transformer.model.anatomy import anatomy
from transformer.model.taps import Recorder, tap_of
from transformer.runs.apply_interventions import tap_for
from transformer.runs.interventions import parse

SENTENCES = {"reverse": "glass", "addition": "12+34=", "palindrome": "noon"}
SWEPT = (
    "features-all.8.1", "projected-all.3", "ffrank-all.all.5", "width-all.all.ffn.0p35.strongest.0",
    "width-all.all.heads.0p5.first.0", "bits-4", "window-all.1", "global-all.1.1",
)  # fmt: skip


def changed(text):
    return parse(text)[0]


def one_pass(checkpoint, trace, changes):
    """All maps, and the probabilities or vectors, of one pass over what the run read."""
    seen, model = Recorder(["*_attn.weights"]), checkpoint.model
    tap = (tap_for(changes, checkpoint) if changes else tap_of()).also(seen)
    source, read = torch.tensor([trace.src_ids]), torch.tensor([trace.read_ids])
    with torch.inference_mode():
        if not model.anatomy.writes:
            return seen.values, model.encode(source, tap=tap)[0].double()
        rows = model(source, read, tap=tap)[0, trace.first_row :]
    return seen.values, rows.double().softmax(-1)


@pytest.mark.parametrize("text", SWEPT)
@pytest.mark.parametrize("name", SENTENCES)
def test_errors_are_what_two_passes_differ_by(name, text):
    checkpoint, change = opened(name), changed(text)
    trace = run(checkpoint, checkpoint.query(SENTENCES[name]))
    at, maps, outputs = sweep(checkpoint, trace, change)
    own = float(getattr(change, change.swept))
    assert own in at
    assert (np.diff(at) > 0).all()
    place = at.tolist().index(own)
    before, rows = one_pass(checkpoint, trace, ())
    after, moved = one_pass(checkpoint, trace, (change,))
    of_layers = [float((after[site] - one).abs().sum(-1).mean()) / 2 for site, one in before.items()]
    assert maps[place] == pytest.approx(np.mean(of_layers), abs=1e-4)  # each layer of an attention counts alike
    errors = (moved - rows).norm(dim=1) / rows.norm(dim=1) if name == "palindrome" else (moved - rows).abs().sum(1) / 2
    assert outputs[place] == pytest.approx(float(errors.mean()), abs=1e-4)


def test_the_error_ends_where_a_larger_number_changes_nothing():
    checkpoint = opened("reverse")
    trace = run(checkpoint, checkpoint.query("glass"))
    for text in ("projected-all.2", "rank-all.2", "window-all.1", "ffrank-all.all.4", "dilated-decoder.1.2"):
        at, maps, outputs = sweep(checkpoint, trace, changed(text))
        assert at[-1] < MOST
        last = np.array([maps, outputs])[:, -2:]  # of a dilated window the last two are alike, of others the last is 0
        assert abs(last[:, 1] - last[:, 0] * text.startswith("dilated")).sum() < 1e-4
    at, *_ = sweep(checkpoint, trace, changed("projected-all.300"))
    assert at.tolist()[-2:] == [256, 300]  # its own is there whatever it is
    at, maps, outputs = sweep(checkpoint, trace, changed("features-all.64.0"))
    assert at.tolist() == [2**n for n in range(11)]
    assert maps[-1] < maps[0] / 2


def test_amounts_are_words_of_a_choice_tenths_of_a_range_or_powers_of_two():
    assert amounts(changed("bits-4")) == ["2", "3", "4", "5", "6", "7", "8"]
    assert amounts(changed("ffrank-all.all.9")) == [1, 2, 4, 8, 9, 16, 32, 64, 128, 256, 512, 1024]
    assert amounts(changed("width-all.all.ffn.0p25.first.0"))[:5] == [0.0, 0.1, 0.2, 0.25, 0.3]
    assert amounts(changed("window-all.0"))[:3] == [0, 1, 2]


def test_what_has_no_finite_numbers_has_no_error():
    checkpoint = opened("reverse")
    trace = run(checkpoint, checkpoint.query("glass"))
    broken = parse("causal-inverted_unguarded-decoder")

    class Broken(type(changed("window-all.1"))):
        def visitors(self, ground):
            return tuple(one for change in broken for one in change.visitors(ground))

    at, maps, outputs = sweep(checkpoint, trace, Broken("decoder", width=1))
    assert np.isnan(maps).all()
    assert np.isnan(outputs).all()
    assert len(at) > 3


@pytest.mark.parametrize("text", [text for text in SWEPT if not text.startswith("features-all.8")])
def test_the_picture_marks_the_chosen_amount(text):
    change = changed(text)
    checkpoint = opened("reverse")
    found = sweep(checkpoint, run(checkpoint, checkpoint.query("glass")), change)
    plot = error_plot(found, change)
    own = found[0].tolist().index(float(getattr(change, change.swept)))
    for drawn, values in zip(plot.spec["data"], found[1:], strict=True):
        np.testing.assert_array_equal(drawn["y"], values)
        assert int(np.argmax(drawn["marker"]["size"])) == own
    whole = text.partition("-")[0] in ("projected", "ffrank", "window", "global")
    assert (plot.spec["layout"]["xaxis"].get("type") == "log") == whole


# What would be saved


def sees(text, i, j):
    return {
        "window-all.1": abs(i - j) <= 1,
        "dilated-all.1.2": abs(i - j) in (0, 2),
        "global-all.1.1": abs(i - j) <= 1 or i == 0 or j == 0,
    }[text]


@pytest.mark.parametrize(
    "text", ["window-all.1", "dilated-all.1.2", "global-all.1.1", "features-all.8.0", "projected-all.3"]
)
@pytest.mark.parametrize("name", SENTENCES)
def test_costs_are_counted_cell_by_cell(name, text):
    checkpoint, change = opened(name), changed(text)
    trace, config = run(checkpoint, checkpoint.query(SENTENCES[name])), checkpoint.config
    sparse = text.split("-")[0] in ("window", "dilated", "global")
    before, after = np.zeros(2, int), np.zeros(2, int)
    for one in anatomy(config).attentions:
        if sparse and one.kind == "cross":
            continue
        d, length = config.of(one.stack).d_head, {"encoder": len(trace.src_ids), "decoder": len(trace.read_ids)}
        n_queries, n_keys = length[one.stack], length[one.keys_from]
        cells = [(i, j) for i in range(n_queries) for j in range(n_keys) if not (one.causal and j > i)]
        if sparse:
            seen = sum(sees(text, *cell) for cell in cells)
            cost = [4 * d * seen, seen]
        elif text.startswith("features"):
            r = 8
            made = 2 * r * d * (n_queries + n_keys)  # φ(q) and φ(k)
            cost = [made + 2 * r * d * n_keys + 2 * r * d * n_queries, r * n_queries + r * n_keys + r * d]
        else:
            r = 3
            cost = [2 * (2 * r * d * n_keys) + 4 * r * d * n_queries, r * n_queries + 2 * r * d]  # E K, E V; r rows
        times = one.n_layers * config.of(one.stack).n_heads
        before += times * np.array([4 * d * len(cells), len(cells)])  # q·k, and its weight times the value
        after += times * np.array(cost)
    assert costs(change, trace, config).tolist() == [before.tolist(), after.tolist()]
    said = str(costs_in_words(change, trace, config))
    assert f"{before[0]:,} → {after[0]:,} operations" in said
    assert f"{before[1]:,} → {after[1]:,} numbers" in said
    assert ("times this length" in said) == (after[0] > before[0])


def test_other_changes_have_no_costs():
    checkpoint = opened("reverse")
    trace = run(checkpoint, checkpoint.query("glass"))
    for text in ("bits-4", "zero-cross.1.1", "ffrank-all.all.2"):
        assert costs_in_words(changed(text), trace, checkpoint.config) is None
    palindrome = opened("palindrome")
    noon = run(palindrome, palindrome.query("noon"))
    assert costs_in_words(changed("window-decoder.1"), noon, palindrome.config) is None  # it has no such attention


def test_a_swept_field_is_a_field_of_its_kind():
    swept = {word: kind.swept for word, kind in KINDS.items() if kind.swept}
    assert set(swept) == {
        "window", "dilated", "global", "features", "rank", "projected", "ffrank", "width", "bits",
    }  # fmt: skip
