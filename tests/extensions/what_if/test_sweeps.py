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
    before, rows = one_pass(checkpoint, trace, ())
    after, moved = one_pass(checkpoint, trace, (change,))
    rows_moved = [
        sum(abs(float(a) - float(b)) for a, b in zip(one, other, strict=True)) / 2
        for site in before
        for heads in zip(before[site][0], after[site][0], strict=True)
        for one, other in zip(*heads, strict=True)
    ]
    counts = [maps_of[0, ..., 0].numel() for maps_of in before.values()]
    weights = np.concatenate([np.full(n, 1 / n) for n in counts]) / len(
        counts
    )  # each layer of an attention counts alike
    place = at.tolist().index(own)
    assert maps[place] == pytest.approx(float(weights @ rows_moved), abs=1e-4)
    errors = [
        float((a - b).norm() / a.norm()) if name == "palindrome" else float((a - b).abs().sum() / 2)
        for a, b in zip(rows, moved, strict=True)
    ]
    assert outputs[place] == pytest.approx(float(np.mean(errors)), abs=1e-4)


def test_the_error_ends_where_a_larger_number_changes_nothing():
    checkpoint = opened("reverse")
    trace = run(checkpoint, checkpoint.query("glass"))
    for text in ("projected-all.2", "rank-all.2", "window-all.1", "ffrank-all.all.4", "dilated-decoder.1.2"):
        at, maps, outputs = sweep(checkpoint, trace, changed(text))
        assert at[-1] < MOST
        last = (
            (maps[-1] + outputs[-1]) if "dilated" not in text else abs(np.diff(maps[-2:])) + abs(np.diff(outputs[-2:]))
        )
        assert last < 1e-4
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
    before, after = [0, 0], [0, 0]
    for one in anatomy(config).attentions:
        if sparse and one.kind == "cross":
            continue
        n_heads, d = config.of(one.stack).n_heads, config.of(one.stack).d_head
        for _ in range(one.n_layers * n_heads):
            n_queries = len(trace.src_ids) if one.stack == "encoder" else len(trace.read_ids)
            n_keys = len(trace.src_ids) if one.keys_from == "encoder" else len(trace.read_ids)
            for i in range(n_queries):
                for j in range(n_keys):
                    if one.causal and j > i:
                        continue
                    before[0] += 2 * d + 2 * d  # q·k, and its weight times the value
                    before[1] += 1
                    if sparse and sees(text, i, j):
                        after[0] += 4 * d
                        after[1] += 1
            if text.startswith("features"):
                r = 8
                after[0] += 2 * r * d * (n_queries + n_keys)  # φ(q) and φ(k)
                after[0] += 2 * r * d * n_keys + 2 * r * d * n_queries  # φ(k)^T V, and φ(q) times it
                after[1] += r * n_queries + r * n_keys + r * d
            if text.startswith("projected"):
                r = 3
                after[0] += 2 * (2 * r * d * n_keys) + 4 * r * d * n_queries  # E K and E V; attention over r rows
                after[1] += r * n_queries + 2 * r * d
    assert costs(change, trace, config).tolist() == [before, after]
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
