"""What a file cannot say is found by trying it on a few texts, or is said to be undecided."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from glassformer.extensions.importers.library import answer_ranking
from glassformer.extensions.importers.library.answer_ranking import POINTS_TO_THE_DOCTOR, best_answers, scored
from glassformer.extensions.importers.library.report import Choice, Field, ImportReport
from tests.extensions.refusing import refusal
from tests.transformer.analysis.test_losses import Tried
from tests.transformer.tiny import DECODER, ENCODER, tiny_model
from transformer.analysis.losses import MOST_SAMPLES, Samples, Variants, loss_of, read_samples, samples_of
from transformer.checkpoint.load import load
from transformer.errors import DataError
from transformer.i18n import say
from transformer.model.config import ModelConfig
from transformer.model.transformer import Transformer
from transformer.text.tokenizer import RawIds

REVERSE = Path(__file__).parents[4] / "checkpoints" / "reverse"
WORDS = ("glass", "abcdef", "kitten", "umbrella", "helloworld")
MORE = (*WORDS, "monday", "quietly", "transform", "lamp", "books", "aabbcc", "noon", "window", "harbour")
PAIRS = Samples(MORE, tuple(word[::-1] for word in MORE))
WHY = say("Nothing says so.")
ON_OFF, ACTIVATIONS = [True, False], ["gelu", "relu", "silu"]
UNDECIDED = "so this comparison cannot decide between them"
HEADLESS = "could be tried: This model does not generate text and has no MLM head"


def field(name, values=(), **more):
    return Field(name, "asked", None, WHY, tuple(map(Choice, values or ())), **more)


def asking(*more, **asked):
    """A report that asks fields, each with its choices."""
    fields = (*(field(name, values) for name, values in asked.items()), *more)
    return ImportReport("model.pt", say("A model."), (), (), {}, fields)


def ranked(one, samples, *more, progress=lambda done, most: None, **asked):
    """The report on a model's fields once they were tried, and these by name."""
    report = scored(asking(*more, **asked), Variants(one).get, samples, progress=progress)
    return report, {one.name: one for one in report.fields}


@pytest.fixture(autouse=True)
def no_time_for_mistakes(monkeypatch):
    """Nothing explains pairs that no answers fit."""
    monkeypatch.setattr(answer_ranking, "SECONDS", 0.0)


@pytest.fixture(scope="module")
def reverse():
    found = load(REVERSE)
    return Tried(found.model, found.src_tokenizer, found.tgt_tokenizer)


def as_ids(reverse, texts):
    """A model's texts as it is given them without a tokenizer, and that model."""
    size = reverse.model.config.src_vocab_size
    typed = tuple(" ".join(map(str, reverse.src_tokenizer.encode(text).ids)) for text in texts)
    return Tried(reverse.model, RawIds(size), RawIds(size)), typed


def test_without_references_what_the_model_writes_finds_the_structure(reverse):
    tried, asked = [], {"n_heads": [2, 4, 8], "norm": ["post", "pre"], "scale_embedding": ON_OFF}
    report, fields = ranked(reverse, Samples(WORDS), progress=lambda *told: tried.append(told), **asked)
    assert best_answers(report) == {name: getattr(reverse.model.config, name) for name in asked}
    assert "have a mean probability of 90" in fields["norm"].evidence
    assert "on 5 texts" in report.notes[-2]
    assert "a wrong model can be certain, too" in report.notes[-1]
    assert tried[-1][0] == len(tried) <= tried[-1][1]


def a_gpt(score_scale, width=32, half=5, steps=100, size=20):
    """A decoder alone that learned to repeat, `2 x 1 x 3`, and lines of its task."""
    torch.manual_seed(0)
    config = ModelConfig(
        n_encoder_layers=0, n_decoder_layers=2, d_model=width, n_heads=4, d_ff=2 * width, dropout=0.0,
        src_vocab_size=size, tgt_vocab_size=size, shared_vocab=True, append_source_eos=False, max_len=24,
        activation="gelu_tanh", positions="learned", scale_embedding=False, score_scale=score_scale,
    )  # fmt: skip
    model = Transformer(config)
    learn = torch.optim.AdamW(model.parameters(), lr=1e-2)
    slower = torch.optim.lr_scheduler.OneCycleLR(learn, 1e-2, total_steps=steps)

    def rows(n):
        half_text = torch.randint(4, size, (n, half))
        start, between, end = (torch.full((n, 1), i) for i in (2, 1, 3))
        return torch.cat((start, half_text, between, half_text, end), dim=1)

    for _ in range(steps):
        batch = rows(32)
        loss = F.cross_entropy(model(batch[:, :-1], batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        learn.zero_grad()
        loss.backward()
        learn.step()
        slower.step()
    lines = Samples(tuple(" ".join(map(str, row)) for row in rows(8).tolist()))
    return Tried(model.requires_grad_(False).eval(), RawIds(size), RawIds(size)), lines


def test_the_truth_is_found_for_a_decoder_alone_of_which_only_lines_are_known():
    gpt, lines = a_gpt(None)
    known = {"n_heads": [2, 4, 8], "norm": ["post", "pre"], "scale_embedding": ON_OFF, "eos_id": None}
    report, fields = ranked(gpt, lines, activation=ACTIVATIONS, **known)
    best = best_answers(report)
    assert {name: best[name] for name in known} == {name: getattr(gpt.model.config, name) for name in known}
    assert "4 fits best (loss " in fields["n_heads"].evidence
    assert "; the next best is " in fields["n_heads"].evidence
    assert "not clearly better than" in fields["activation"].evidence


def test_a_forgotten_scale_of_the_scores_is_found():
    gpt, lines = a_gpt(1.0)
    scales = replace(field("score_scale", (None, 1.0, 32**-0.5)), how="inferred")
    report, fields = ranked(gpt, lines, scales, n_heads=[1, 2, 4, 8])
    assert best_answers(report) == {"n_heads": 4, "score_scale": 1.0}
    assert "1 fits best" in fields["score_scale"].evidence
    assert "null" not in fields["score_scale"].evidence
    alone, _ = ranked(gpt, lines, scales)  # every question is answered
    assert alone.fields[0].choices[0] == fields["score_scale"].choices[0]


def test_a_model_that_learned_nothing_is_said_to_be_no_better_than_guessing():
    one = Tried(tiny_model(dtype=torch.float32), RawIds(17), RawIds(19))
    pairs = Samples(("5 6 7", "8 9", "10 11 12"), ("12 4", "5 6 7", "8"))
    report, fields = ranked(one, pairs, n_heads=[1, 3])
    assert report.notes[-2].startswith("Even the best answers are no better than guessing: their loss on 3 texts is ")
    assert report.notes[-1] == POINTS_TO_THE_DOCTOR
    assert fields["n_heads"] == field("n_heads", [1, 3])  # said once, and nothing is best
    assert best_answers(report) == {}
    decoder = Tried(tiny_model(dtype=torch.float32, **DECODER), RawIds(17), RawIds(17))
    for other in (one, decoder):  # without targets nothing is known of its task, and its answers keep their order
        alone, fields = ranked(other, Samples(pairs.sources), n_heads=[1, 3])
        assert POINTS_TO_THE_DOCTOR not in alone.notes
        assert all(choice.score is not None for choice in fields["n_heads"].choices)
    assert "no better than guessing" in alone.notes[-1]


def test_of_choices_that_only_rounding_tells_apart_the_likelier_is_taken(reverse):
    """A feed-forward network that hardly counts: whichever activation stands first is as good."""
    model = Transformer(replace(reverse.model.config, dropout=0.0)).double()
    model.load_state_dict(reverse.model.state_dict())
    with torch.no_grad():
        for layer in (*model.encoder.layers, *model.decoder.layers):
            layer.ffn.down_proj.weight.mul_(1e-8)
    one = replace(reverse, model=model.requires_grad_(False).eval())
    for values in (["gelu", "relu"], ["relu", "gelu"]):
        report, fields = ranked(one, PAIRS.only(range(5)), activation=values)
        assert best_answers(report)["activation"] == values[0]
        assert report.decided == {}
        assert UNDECIDED in fields["activation"].evidence


def test_what_pairs_show_clearly_is_decided_and_what_they_do_not_stays_a_question(reverse):
    pad, usual = field("pad_id", usual=(None,)), field("norm", ("post", "pre"), usual=("post",))
    asked = {"n_heads": [16, 4], "scale_embedding": ON_OFF, "activation": ACTIVATIONS}
    report, fields = ranked(reverse, PAIRS, usual, pad, **asked)
    assert report.decided == {"n_heads": 4, "scale_embedding": True, "norm": "pre", "pad_id": None}
    assert "4 fits best (loss 0.1" in fields["n_heads"].evidence
    assert "; the next best is 16 (loss " in fields["n_heads"].evidence
    assert report.decisions[0].startswith("n_heads = 4. Your pairs decide: ")
    assert [one.name for one in report.asked] == ["activation"]  # another one is hardly worse
    assert best_answers(report) == {"activation": "relu"}
    assert "is taken: it is usual, and nothing depends on the choice" in fields["pad_id"].evidence
    two, _ = ranked(reverse, PAIRS, n_heads=[2, 4], norm=["post", "pre"])
    assert (two.decided, best_answers(two)) == ({"norm": "pre"}, {"n_heads": 4})  # nor is half the number of heads
    few, fields = ranked(reverse, PAIRS.only([0, 1]), usual, pad, **asked)
    assert (few.decided, best_answers(few)["n_heads"]) == ({}, 4)
    assert fields["norm"].usual in ((), ("post",))
    assert ranked(reverse, Samples(WORDS), n_heads=[16, 4])[0].decided == {}


def test_choices_that_compute_the_same_stay_a_question_where_something_depends_on_them(reverse):
    report, fields = ranked(reverse, PAIRS, n_heads=[16, 4], unk_id=[1, 20, 21], positions=["learned", "none"])
    assert report.decided == {"n_heads": 4, "positions": "learned"}  # no model is without positions
    assert UNDECIDED in fields["unk_id"].evidence
    raw, ids = as_ids(reverse, (*PAIRS.sources, *PAIRS.targets))
    typed = Samples(ids[: len(MORE)], ids[len(MORE) :])
    report, fields = ranked(raw, typed, pad_id=[0, None, 1, 24])  # a letter is the last one
    assert report.decided == {}
    assert "Your pairs do not tell these apart: 0, null, 1." in fields["pad_id"].evidence


def test_a_usual_value_that_pairs_refute_is_usual_no_more(reverse):
    odd = (
        field("activation", ["relu", "gelu"], usual=("relu",)),
        field("scale_embedding", [False, True], usual=(False,)),
    )
    report, fields = ranked(reverse, PAIRS, *odd)
    assert fields["activation"].usual == ("relu",)
    assert report.decided == {"scale_embedding": True}
    wrong = Variants(reverse).get({"norm": "post"})  # with which no answer fits
    assert ranked(wrong, PAIRS, *odd)[0].decided == {}


@pytest.mark.parametrize("with_end", [False, True])
@pytest.mark.parametrize(("kind", "pairs"), [({}, True), ({"pad_id": None}, True), (DECODER, True), (DECODER, False)])
def test_the_loss_of_an_answer_is_that_of_the_text(kind, pairs, with_end):
    one = Tried(tiny_model(**kind), RawIds(17), RawIds(17 if kind is DECODER else 19))
    texts = Samples(("5 6 7", "8 9", "10 11 12 4"), ("12 4", "5 6 7", "8") if pairs else ())
    found = answer_ranking._losses(one, texts, with_end=with_end)
    expected = loss_of(one, texts, with_end=with_end)
    assert found[0].totals == pytest.approx(expected.totals, rel=1e-5)
    assert found[0].pieces == expected.pieces
    assert len(found) > 1  # and at other temperatures


def test_of_pairs_that_no_answer_fits_the_mistake_that_explains_them_is_named(reverse, monkeypatch):
    copies = Samples(PAIRS.targets, PAIRS.targets)  # the sources come in backwards
    assert ranked(reverse, copies, n_heads=[4, 2])[0].notes[-1] == POINTS_TO_THE_DOCTOR
    monkeypatch.setattr(answer_ranking, "SECONDS", 3600.0)
    notes = ranked(reverse, copies, n_heads=[4, 2])[0].notes
    named = notes[notes.index(POINTS_TO_THE_DOCTOR) + 1]
    assert "the mistake “The source read backwards” explains your pairs: the loss is 0.1" in named


def test_what_cannot_be_tried_is_told_and_stays_as_it_was():
    headless = Tried(tiny_model(**ENCODER), RawIds(17), RawIds(17))
    report, fields = ranked(headless, Samples(("5 6",)), n_heads=[1, 3])
    assert HEADLESS in report.notes[-1]
    assert fields["n_heads"].choices == (Choice(1), Choice(3))
    missing = scored(asking(n_heads=[1, 3]), lambda _: None, Samples(("5 6",)))
    assert "some tensors are missing" in missing.notes[-1]
    long = Tried(tiny_model(), RawIds(17), RawIds(19))
    report, _ = ranked(long, Samples(("5 " * 40,), ("6",)), n_heads=[1, 3])
    assert "no text is short enough" in report.notes[-1]
    refusal(lambda: ranked(long, Samples(("cat",), ("6",)), n_heads=[1, 3]), "'cat'", kind=DataError)
    answered = asking(Field("n_heads", "read", 3, WHY))
    assert scored(answered, lambda _: None, Samples(("5",))) is answered


def test_answers_to_which_other_tensors_belong_are_built_once_and_impossible_ones_have_no_score():
    models, built = {"a": tiny_model(seed=0), "b": tiny_model(seed=1)}, []

    def build(answers):
        built.append(answers["src_table"])
        model = models.get(answers["src_table"])
        return model and Tried(model, RawIds(17), RawIds(19))

    table, heads = scored(asking(src_table=["a", "b", "c"], n_heads=[3, 5, 1]), build, Samples(("5 6 7", "8 9"))).fields
    assert {one.value: one.score is None for one in table.choices} == {"a": False, "b": False, "c": True}
    assert heads.choices[-1] == Choice(5)  # not a divisor of 12
    assert len(built) < 12


def test_variants_share_all_parameters():
    base = Tried(tiny_model(), RawIds(17), RawIds(19))
    models = Variants(base)
    one, twin = models.get({"n_heads": 4, "bos_id": 5}).model, models.get({"n_heads": 4, "pad_id": None}).model
    for name, parameter in base.model.named_parameters():
        assert one.get_parameter(name).data_ptr() == parameter.data_ptr()
    assert (one.config.d_head, one.config.decoder_start_id, one.config.pad_id) == (3, 5, 0)
    assert (twin.config.bos_id, twin.config.pad_id) == (2, None)
    assert one.decoder is twin.decoder
    src, tgt = torch.tensor([[5, 6, 0]]), torch.tensor([[5, 7]])
    expected = tiny_model(n_heads=4, bos_id=5, decoder_start_id=5)(src, tgt)
    assert torch.equal(one(src, tgt), expected)
    assert not torch.equal(twin(src, tgt), expected)
    assert models.get({"d_ff": 8}) is None


def test_the_end_mark_of_a_source_of_ids_is_tried(reverse):
    """Nobody is asked, as nothing was taken for the source's end so far; the loss tells."""
    raw, ids = as_ids(reverse, (*WORDS, *(word[::-1] for word in WORDS)))
    pairs = Samples(ids[:5], ids[5:])
    end = Field("append_source_eos", "inferred", False, WHY, (Choice(False), Choice(True)))
    report, fields = ranked(raw, pairs, end, n_heads=[16, 4])
    assert report.decided == {"n_heads": 4, "append_source_eos": True}
    assert "Your pairs decide: true fits best (loss 0.1" in fields["append_source_eos"].evidence
    assert best_answers(report) == {}
    right, wrong = fields["append_source_eos"].choices
    assert (right.output, wrong.output == right.output) == (pairs.targets[0], False)
    ended = Samples(tuple(f"{source} {reverse.model.config.eos_id}" for source in pairs.sources), pairs.targets)
    again, fields = ranked(raw, ended, end, n_heads=[16, 4])
    assert again.decided == {"n_heads": 4}  # what was assumed stays so
    assert "false fits best" in fields["append_source_eos"].evidence


NO_PAIRS = {
    "": "contains no texts", "a\tb\tc": "found 3 columns", "a\tb\nc": "line 2: some lines are",
    "a\t": "expected `source TAB target`", "a" * 6000: "has 6,000 characters; the limit is 5,000",
}  # fmt: skip


def test_lines_are_read_as_pairs_or_as_texts(tmp_path):
    assert samples_of("a\tb\n\n c \td\r\n", label="x") == Samples(("a", "c"), ("b", "d"))
    assert len(samples_of("text\n" * 100, label="x")) == MOST_SAMPLES
    for content, problem in NO_PAIRS.items():
        refusal(lambda content=content: samples_of(content, label="pairs.tsv"), problem, kind=DataError)
    path = tmp_path / "pairs.tsv"
    refusal(lambda: read_samples(path), "cannot be read", kind=DataError)
    path.write_bytes("\ufeffä\tö\n".encode())
    assert read_samples(path) == Samples(("ä",), ("ö",))
    path.write_bytes(b"\xff\xfea\x00")
    refusal(lambda: read_samples(path), "not UTF-8", kind=DataError)
