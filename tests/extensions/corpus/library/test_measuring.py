"""Measures of many lines at once equal those of one run at a time, on any device.

That links are counted as the scores of an alignment is in `test_scores`.
"""

import math

import numpy as np
import pytest
import sacrebleu

from glassformer.extensions.corpus.library.measuring import measure
from glassformer.extensions.corpus.library.tables import HEADS, SENTENCES, VECTORS, CorpusLine, CorpusOptions
from glassformer.extensions.what_if.head_effects import head_effects
from tests.conftest import SOURCES, TARGETS
from tests.transformer.devices import OTHER, TEXT
from tests.transformer.devices import of_name as of_name
from tests.transformer.one_stack import alone
from tests.transformer.spoiling import weights_with
from transformer import load, run
from transformer.analysis.head_statistics import NAMES, measure_by_layer, norm_share, output_projections, outputs_site
from transformer.model.taps import Recorder, tap_of
from transformer.runs.query import Query
from transformer.runs.teacher_forcing import judge

CLOSE = {"rtol": 0, "atol": 1e-5}
LINES = [CorpusLine(10 + i, source, target) for i, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True))]


def forced(checkpoint, line):
    """The run that reads the reference, and what heads gave in it."""
    config, parts = checkpoint.config, checkpoint.model.anatomy
    ids = ()
    if parts.writes and line.target is not None:
        ids = checkpoint.tgt_tokenizer.encode(line.target).ids + ((config.eos_id,) if parts.reads else ())
    query = Query(checkpoint=checkpoint.content_hash, source=line.source, forced=ids, max_new=max(len(ids), 1))
    recorder = Recorder(["*.heads", "*.queries", "*.keys"])
    return run(checkpoint, query, tap=tap_of(recorder)), recorder.values


def expected(checkpoint, line, kind):
    """Every measure of a line's heads by `head_statistics`, [layer, head] by name."""
    trace, values = forced(checkpoint, line)
    n_layers = checkpoint.model.anatomy.attention(kind).n_layers
    heads = np.stack([values[outputs_site(kind, layer)][0].numpy() for layer in range(n_layers)])
    shares = norm_share(heads, output_projections(checkpoint.model, kind))
    found = measure_by_layer(checkpoint, trace, kind, shares=shares)
    return trace, {name: one.means() for name, one in found.items()}


def rows_of(table, number, kind):
    """A line's rows of one kind, by layer and head from 0."""
    rows = [row for row in table.to_pylist() if row["line"] == number and row["kind"] == kind]
    return {(row["layer"] - 1, row["head"] - 1): row for row in rows}


def by_hand(checkpoint, trace, kind, layer, head):
    """Same, punctuation and peak of a map, and the peak's row and column."""
    allowed = trace.mask(kind, layer)
    weights = np.where(allowed, trace.maps(kind)[layer, head], 0)
    sides = {"encoder": trace.src_tokens, "decoder": trace.read_tokens}
    pieces = sides.get(kind, trace.read_tokens), sides.get(kind, trace.src_tokens)
    special = {"<s>", "</s>", "<unk>", "<pad>"}
    texts = [np.array(["" if one in special else one.replace("▁", "") for one in side]) for side in pieces]
    alike = allowed & (texts[0][:, None] == texts[1]) & (texts[1] != "")
    marks = allowed & np.array([bool(text) and not any(map(str.isalnum, text)) for text in texts[1]])
    found = []
    for on in (alike if kind == "cross" else alike & ~np.eye(*alike.shape, dtype=bool), marks):
        sums = (weights * on).sum(axis=1)[on.any(axis=1)]
        found.append(sums.mean() if sums.size else None)
    several = np.where(allowed.sum(axis=1, keepdims=True) > 1, weights, -1)
    q, k = np.unravel_index(several.argmax(), several.shape)
    return (*found, several[q, k], q, k) if several[q, k] >= 0 else (*found, None, None, None)


def check(checkpoint, lines, found):
    """Each number of each line against the run of that line alone."""
    for kind in checkpoint.model.anatomy.kinds:
        for line in lines:
            trace, means = expected(checkpoint, line, kind)
            rows = rows_of(found.heads, line.number, kind)
            assert len(rows) == trace.maps(kind).shape[0] * trace.maps(kind).shape[1]
            for place, row in rows.items():
                for name in NAMES:
                    if name in means and not np.isnan(means[name][place]):
                        np.testing.assert_allclose(row[name], means[name][place], err_msg=name, **CLOSE)
                    else:
                        assert row[name] is None, name
                same, punctuation, peak, q, k = by_hand(checkpoint, trace, kind, *place)
                for name, value in {"same": same, "punctuation": punctuation, "peak": peak}.items():
                    assert row[name] == (None if value is None else pytest.approx(value, abs=1e-5)), name
                assert (row["peak_query"], row["peak_key"]) == (q, k)


def without_targets(lines=LINES):
    return [CorpusLine(line.number, line.source) for line in lines]


def test_numbers_are_those_of_each_run(checkpoint):
    lines = [*LINES, CorpusLine(99, "ta ta ta , mi ta", "moon , moon the fox . , fox")]
    found = measure(checkpoint, lines, CorpusOptions())
    assert found.heads.schema.equals(HEADS)
    assert found.sentences.schema.equals(SENTENCES)
    assert found.heads["line"].to_pylist()[: len(lines)] == [line.number for line in lines]
    check(checkpoint, lines, found)


@pytest.mark.parametrize(
    ("stack", "changes"),
    [
        ("encoder", {}),
        ("encoder", {"pad_id": None}),  # whose lines cannot be padded
        ("decoder", {}),
        ("decoder", {"positions": "rotary", "pad_id": None}),
    ],
)
def test_one_stack_alone(stack, changes, tmp_path):
    checkpoint, lines = alone(stack, tmp_path, **changes), without_targets()
    found = measure(checkpoint, lines, CorpusOptions())
    check(checkpoint, lines, found)
    assert (found.sentences["n_target"].null_count == len(lines)) == (stack == "encoder")
    if stack == "decoder":
        pairs = [CorpusLine(line.number, line.source, line.target[:5]) for line in LINES]
        check(checkpoint, pairs, measure(checkpoint, pairs, CorpusOptions()))
        for row, line in zip(found.sentences.to_pylist(), lines, strict=True):
            one = judge(checkpoint, Query(checkpoint=checkpoint.content_hash, source=line.source), None)
            assert row["log_prob"] == pytest.approx(one.log_prob, abs=1e-4)
        assert found.heads["peak_step"].null_count == found.heads.num_rows  # a prompt has no steps


def test_a_layer_with_a_window_has_rows_of_its_own(tmp_path):
    checkpoint, line = alone("decoder", tmp_path, windows=(3, 0, 2)), CorpusLine(1, SOURCES[3])
    found = rows_of(measure(checkpoint, [line], CorpusOptions()).heads, 1, "decoder")
    trace, means = expected(checkpoint, line, "decoder")
    for (layer, head), row in found.items():
        for name in ("entropy", "entropy_share", "previous", "norm_share"):
            assert row[name] == pytest.approx(means[name][layer, head], abs=1e-5)
        rows = trace.mask("decoder", layer)[:, 0]  # those that may look at the first token
        assert row["first"] == pytest.approx(trace.maps("decoder")[layer, head, rows, 0].mean(), abs=1e-5)


def test_predictions_are_those_of_teacher_forcing(checkpoint):
    for line, row in zip(LINES, measure(checkpoint, LINES, CorpusOptions()).sentences.to_pylist(), strict=True):
        one = judge(checkpoint, Query(checkpoint=checkpoint.content_hash, source=line.source), line.target)
        assert row["log_prob"] == pytest.approx(one.log_prob, abs=1e-4)
        assert row["loss"] == pytest.approx(one.mean_loss, abs=1e-5)
        assert row["n_target"] == len(one)
        assert (row["worst_rank"], row["worst_step"]) == (one.ranks.max(), one.ranks.argmax())
        assert row["exact"] == bool((one.ranks == 1).all())
        assert row["output"] is row["bleu"] is row["chrf"] is row["problem"] is None


def test_decoded_lines_are_measured_on_what_was_written(checkpoint):
    lines = [*LINES, CorpusLine(50, "ta ta ba mi")]
    found = measure(checkpoint, lines, CorpusOptions(decode=True))
    outputs = [run(checkpoint, Query(checkpoint=checkpoint.content_hash, source=line.source)) for line in lines]
    bleu, chrf = sacrebleu.BLEU(), sacrebleu.CHRF()
    for row, line, trace in zip(found.sentences.to_pylist(), lines, outputs, strict=True):
        assert row["output"] == trace.output_text
        assert row["n_target"] == trace.n_steps
        assert row["log_prob"] == pytest.approx(trace.log_prob, abs=1e-3)
        for name, one in (("bleu", bleu), ("chrf", chrf)):
            given = [row["output"]], [[line.target]]
            assert row[name] == (one._extract_corpus_statistics(*given)[0] if line.target else None)
        assert row["exact"] == (None if line.target is None else row["output"] == line.target)
    for line, trace in zip(lines, outputs, strict=True):
        rows = rows_of(found.heads, line.number, "cross")
        means = measure_by_layer(checkpoint, trace, "cross")["entropy"].means()
        np.testing.assert_allclose([row["entropy"] for row in rows.values()], means.ravel(), **CLOSE)


def test_what_is_lost_without_each_head(checkpoint, tmp_path):
    found = measure(checkpoint, LINES, CorpusOptions(effect=True))
    for line in LINES:
        effects = head_effects(checkpoint, forced(checkpoint, line)[0])
        for kind in checkpoint.model.anatomy.kinds:
            for place, row in rows_of(found.heads, line.number, kind).items():
                assert row["effect"] == pytest.approx(-effects.of[kind].log_prob[place].sum(), abs=1e-4)
    of_encoder = measure(alone("encoder", tmp_path), LINES, CorpusOptions(effect=True)).heads
    assert of_encoder["effect"].null_count == of_encoder.num_rows > 0


def test_queries_and_keys_of_the_first_lines(checkpoint):
    found = measure(checkpoint, LINES, CorpusOptions(vectors=11)).vectors
    assert found.schema.equals(VECTORS)
    assert set(found["line"].to_pylist()) == {10, 11}
    trace, values = forced(checkpoint, LINES[1])
    rows = [row for row in found.to_pylist() if row["line"] == 11]
    for kind, stack, own, keys in (
        ("encoder", "encoder.1.self_attn", trace.src_tokens, trace.src_tokens),
        ("cross", "decoder.1.cross_attn", trace.read_tokens, trace.src_tokens),
    ):
        for side, pieces, name in (("query", own, "queries"), ("key", keys, "keys")):
            there = {"kind": kind, "layer": 2, "head": 3, "side": side}
            some = [row for row in rows if there.items() <= row.items()]
            assert [row["piece"] for row in some] == list(pieces)
            assert [row["place"] for row in some] == list(range(len(pieces)))
            vectors = values[f"{stack}.{name}"][0, 2].numpy()
            np.testing.assert_allclose([row["vector"] for row in some], vectors, **CLOSE)
    assert measure(checkpoint, LINES, CorpusOptions(vectors=9)).vectors is None


def test_a_line_that_cannot_be_read_says_why(checkpoint):
    bad = [CorpusLine(3, "ba " * 60, "a fox"), CorpusLine(4, "ba"), CorpusLine(5, "ba", "")]
    lines = [CorpusLine(1, ""), LINES[0], *bad]
    found = measure(checkpoint, lines, CorpusOptions())
    problems = found.sentences["problem"].to_pylist()
    assert [problem is None for problem in problems] == [False, True, False, False, False]
    assert "no second column" in problems[3]
    assert set(found.heads["line"].to_pylist()) == {10}
    assert found.sentences["log_prob"].null_count == 4
    assert measure(checkpoint, lines[:1], CorpusOptions()).heads.num_rows == 0
    assert measure(checkpoint, [], CorpusOptions()).sentences.num_rows == 0


def test_a_corpus_is_measured_the_same_on_another_device(of_name):
    lines = [CorpusLine(1, TEXT, OTHER), CorpusLine(2, OTHER, TEXT), CorpusLine(3, "ke lo su ta", "ba")]
    for name in ("two vocabularies", "windows", "filling"):
        pair = of_name(name)
        for decode in (False, True) if pair[0].model.anatomy.writes else (False,):
            options = CorpusOptions(decode=decode, effect=not decode, vectors=2)
            here, there = (measure(one, lines, options) for one in pair)
            for table in ("sentences", "heads", "vectors"):
                assert getattr(there, table).equals(getattr(here, table)), table
            assert not any(here.sentences["problem"].to_pylist())


def test_damaged_parameters_are_named(spoil):
    bias = "encoder.layers.1.ffn.up_proj.bias"
    checkpoint = load(spoil("model.safetensors", weights_with(lambda state: state[bias].fill_(math.nan))))
    found = measure(checkpoint, LINES, CorpusOptions())
    assert all("encoder.1.ffn" in problem for problem in found.sentences["problem"].to_pylist())
    assert found.heads.num_rows == 0
    assert found.vectors is None
