"""With the rules of a generation_config.json is written what `generate` of transformers writes with them."""

import json
from itertools import pairwise

import pytest
import torch
from transformers import BartConfig, BartForConditionalGeneration, GPT2Config, GPT2LMHeadModel

from glassformer.extensions.huggingface.folder import import_folder
from tests.extensions.huggingface.parity import change_config, opened, saved, sources_of, tiny, written_by
from tests.extensions.refusing import refusal
from tests.transformer.alike import assert_alike
from transformer import Beam, Greedy, Sampling, run
from transformer.errors import QueryError
from transformer.runs.running import run_together

BART_IDS = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2}
GPT2_IDS = {"bos_token_id": 3, "eos_token_id": [3, 9]}
NEW = 14
RULES = {
    "ends": {"min_length": 9, "max_length": 14, "forced_eos_token_id": 2},
    "runs": {"no_repeat_ngram_size": 2, "min_new_tokens": 7, "min_length": 12},
    "penalty": {"repetition_penalty": 1.8, "max_new_tokens": 11, "max_length": 5},
    "again": {"repetition_penalty": 0.55, "no_repeat_ngram_size": 3},
}


@pytest.fixture(scope="module")
def bart(tmp_path_factory):
    sizes = {f"{side}_{name}": value for side in ("encoder", "decoder")
             for name, value in {"layers": 2, "attention_heads": 4, "ffn_dim": 40}.items()}  # fmt: skip
    config = BartConfig(vocab_size=61, d_model=24, max_position_embeddings=64, **sizes, **BART_IDS)
    return tiny(BartForConditionalGeneration, config), tmp_path_factory.mktemp("bart"), BART_IDS


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    config = GPT2Config(vocab_size=61, n_embd=24, n_layer=2, n_head=4, n_positions=64)
    return tiny(GPT2LMHeadModel, config, seed=1), tmp_path_factory.mktemp("gpt2"), GPT2_IDS


def both(made, name, rules):
    """Their model and ours, of a folder with these settings."""
    model, root, ids = made
    folder = saved(model, root / name, **(ids | rules))
    theirs = type(model).from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    return theirs, opened(folder)


def queries(ours, how=None):
    texts = [" ".join(map(str, source[0].tolist())) for source in sources_of(ours, shortest=3)]
    return [ours.query(text, max_new=NEW, decoding=how or Greedy()) for text in texts]


def words_of(ours):
    """Rules about ids that this model would write."""
    ids = [run(ours, query).tgt_ids for query in queries(ours)]
    words = [[1], [ids[0][2]], list(ids[1][1:3]), list(ids[2][1:5])]
    return {"bad_words_ids": words, "suppress_tokens": [ids[3][3]], "begin_suppress_tokens": [ids[2][0], ids[3][0]]}


def rules_for(name, made):
    """Of that name; nothing that is padding for one of the two is written."""
    rules = {"bad_words_ids": [[1]]} | RULES.get(name, {})
    if name == "words":
        rules |= words_of(both(made, "plain", rules)[1])
    if "eos_token_id" in made[2] and isinstance(made[2]["eos_token_id"], list) and "forced_eos_token_id" in rules:
        rules["forced_eos_token_id"] = [9, 3]
    return rules


@pytest.mark.parametrize(
    ("which", "name"),
    [("bart", "ends"), ("bart", "penalty"), ("bart", "words"), ("gpt2", "ends"), ("gpt2", "runs"), ("gpt2", "again")],
)
def test_output_is_that_of_generate(which, name, request):
    """Greedy; and what chooses as greedy does, or decodes in company, writes the same."""
    made = request.getfixturevalue(which)
    rules = rules_for(name, made)
    theirs, ours = both(made, name, rules)
    traces = [run(ours, query) for query in queries(ours)]
    expected = [written_by(theirs, source, new=NEW) for source in sources_of(ours, shortest=3)]
    assert [list(trace.tgt_ids) for trace in traces] == expected
    changed = [trace for trace in traces if trace.log_probs.argmax(axis=1).tolist() != expected[traces.index(trace)]]
    assert changed
    assert_alike(run_together(ours, queries(ours)), traces)
    for how in (Beam(size=1), Sampling(top_k=1)):
        assert [list(run(ours, query).tgt_ids) for query in queries(ours, how)] == expected
    steps = [trace.step(t, top_k=61) for trace in traces[:2] for t in range(trace.n_steps)]
    assert not any(step.chosen.rule == "closed" for step in steps)
    assert any(one.rule for step in steps for one in step.candidates)


def test_beams_and_samples_keep_the_rules(bart):
    rules = {"no_repeat_ngram_size": 2, "min_length": 6, "forced_eos_token_id": 2, "bad_words_ids": [[1]]}
    _, ours = both(bart, "beams", rules | {"repetition_penalty": 1.3})
    for how in (Beam(size=4), Sampling(temperature=2.0, seed=3)):
        for query in queries(ours, how):
            trace = run(ours, query)
            ids = (2, *trace.tgt_ids)
            assert len(set(pairs := list(pairwise(ids)))) == len(pairs)
            assert trace.tgt_ids[-1] == 2
            assert trace.tgt_ids.index(2) >= 5
            assert trace.log_prob == pytest.approx(
                sum(trace.step(t).chosen.log_probability for t in range(trace.n_steps))
            )
            for one in trace.hypotheses:
                assert one.log_prob <= 0


def test_counts_of_new_pieces_win_and_the_first_piece_was_once_forced_in_another_way(bart, tmp_path):
    model, _, ids = bart
    counts = {"min_length": 9, "min_new_tokens": 2, "max_length": 5, "max_new_tokens": 11}
    folder = saved(model, tmp_path / "old", **ids, **counts)
    config = opened(folder).config
    assert (config.min_length, config.min_new, config.max_length, config.max_new) == (0, 2, None, 11)
    (folder / "generation_config.json").unlink()
    change_config(folder, force_bos_token_to_be_generated=True)
    assert opened(folder).config.forced_ids == (0,)


def test_a_value_that_cannot_be_is_refused_by_its_key(bart, tmp_path):
    model, _, ids = bart
    folder = saved(model, tmp_path / "m")
    for key, value in (
        ("min_length", -1), ("max_length", 0), ("max_new_tokens", True), ("no_repeat_ngram_size", 2.5),
        ("repetition_penalty", 0), ("repetition_penalty", "1.2"), ("bad_words_ids", [[]]), ("bad_words_ids", [5]),
        ("begin_suppress_tokens", [-3]), ("suppress_tokens", {"a": 1}), ("forced_eos_token_id", 10**20),
        ("forced_eos_token_id", 1), ("eos_token_id", [2, 2.0]),
    ):  # fmt: skip
        (folder / "generation_config.json").write_text(json.dumps(ids | {key: value}))
        refusal(lambda: import_folder(folder), key)


def test_an_id_of_minus_one_means_that_there_is_no_such_piece(gpt2, tmp_path):
    model, _, ids = gpt2
    folder = saved(model, tmp_path / "m", **ids)
    own = folder / "generation_config.json"
    for path in (folder / "config.json", own):
        before = path.read_text()
        path.write_text(json.dumps({**json.loads(before), "pad_token_id": -1}))
        assert not import_folder(folder).report.asked
        path.write_text(json.dumps({**json.loads(before), "eos_token_id": -1}))
    assert [one.name for one in import_folder(folder).report.asked] == ["eos_id"]
    assert not import_folder(folder, answers={"eos_id": 3}).report.asked


def test_rules_that_leave_nothing_to_choose_are_an_error(gpt2):
    _, ours = both(gpt2, "closed", {"suppress_tokens": [*range(3), *range(4, 9), *range(10, 61)], "min_new_tokens": 3})
    with pytest.raises(QueryError, match="rule out every token"):
        run(ours, queries(ours)[0])
