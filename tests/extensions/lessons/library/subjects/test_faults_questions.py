"""What is asked about faults has the answer of models that have the fault built in."""

import numpy as np
import pytest
import torch

from glassformer.extensions.lessons.library.subjects import faults_questions
from glassformer.extensions.lessons.library.survey import case_of
from tests.extensions.doctor.library.planted import of_class, told
from tests.extensions.lessons.library.posed import picked
from tests.healthy import healthy
from transformer.model.masks import causal_mask, combine_masks, padding_mask
from transformer.model.transformer import Transformer
from transformer.runs.interventions import parse

SENTENCES = {"zh-en": "老师昨天没有看见那只猫。", "en-fr": "She often wants a book.", "reverse": "housekeeper"}
SEVERAL = ("老师昨天没有看见那只猫。", "他喜欢吃苹果和面包。", "孩子们昨天在家看见一本书。", "我没有看见那只猫和火车。")


def masked(sees):
    """A model whose causal mask is another, by a function of the number of target tokens; padding stays closed."""

    class Masked(Transformer):
        def target_mask(self, tgt_ids, *, n_past=0, tap=None):
            n = tgt_ids.size(1)
            return combine_masks(sees(n), padding_mask(tgt_ids, pad_id=self.config.pad_id))

    return of_class(Masked)


class SourcePadsSeen(Transformer):
    """Padding of the source is read like any token."""

    def source_mask(self, src_ids):
        return padding_mask(src_ids, pad_id=None)


@pytest.fixture(params=SENTENCES)
def case(request):
    return case_of(healthy(request.param), SENTENCES[request.param])


def logits_of(checkpoint, src_ids, tgt_ids):
    with torch.inference_mode():
        return checkpoint.model(torch.tensor([src_ids]), torch.tensor([tgt_ids]))[0].double().numpy()


def loss_of(checkpoint, case, written):
    """The mean of -ln p of an output that is read at once."""
    logits = logits_of(checkpoint, case.trace.src_ids, [checkpoint.config.decoder_start_id, *written[:-1]])
    log_probs = logits - np.log(np.exp(logits - logits.max(axis=-1, keepdims=True)).sum(axis=-1, keepdims=True))
    log_probs -= logits.max(axis=-1, keepdims=True)
    return -log_probs[np.arange(len(written)), list(written)].mean()


def test_parameters_read_with_another_number_of_heads(case):
    posed = picked(faults_questions.wrong_heads, case)
    answer = faults_questions.misread_heads(posed)
    misread = told(n_heads=posed.picked["told"])(case.checkpoint)
    output = misread.run(case.trace.query.source).output_text
    assert answer.right == ("same" if output == case.trace.output_text else "other")
    assert answer.values["after"] == output
    assert answer.values["loss"] == pytest.approx(loss_of(case.checkpoint, case, case.trace.tgt_ids), abs=1e-4)
    assert answer.values["loss_told"] == pytest.approx(loss_of(misread, case, case.trace.tgt_ids), abs=1e-4)
    assert case.changed(*parse(answer.values["do"])).output_text == output


@pytest.mark.parametrize("sentence", SEVERAL)
def test_rows_that_move_are_those_of_a_model_with_that_fault(sentence):
    case = case_of(healthy("zh-en"), sentence)
    posed = picked(faults_questions.mask_evidence, case)
    plants = {
        "none": lambda same: same,
        "off": masked(lambda n: torch.ones(1, 1, n, n, dtype=torch.bool)),
        "peek": masked(lambda n: causal_mask(n, offset=1)[..., :n]),
    }
    found, planted = posed.picked, posed.picked["planted"]
    assert faults_questions.planted_mask(posed).right == planted
    read = list(case.trace.read_ids)
    other = list(read)
    other[found["place"] - 1] = case.checkpoint.tgt_tokenizer.id_of(found["other"])
    for name, plant in plants.items():
        faulty = plant(case.checkpoint)
        before, after = (logits_of(faulty, case.trace.src_ids, ids) for ids in (read, other))
        rows = np.flatnonzero((before != after).any(axis=-1)) + 1
        same = (rows[0], rows[-1]) == (found["a"], found["b"])
        assert same == (name == planted), name


def test_evidence_of_all_faults_is_planted_somewhere():
    words = ("houses", "garden", "window", "bridge", "planet", "silver", "orange", "forest")
    planted = {faults_questions.mask_evidence(case_of(healthy("reverse"), word))["planted"] for word in words}
    assert len(planted) > 2


@pytest.mark.parametrize(("name", "sentence"), [("en-fr", SENTENCES["en-fr"]), ("reverse", "glass")])
def test_pads_change_an_output_from_that_number_on(name, sentence):
    case = case_of(healthy(name), sentence)
    answer = faults_questions.pads_until_it_shows(case)
    pads, config = case.checkpoint.config.pad_id, case.checkpoint.config
    blind = of_class(SourcePadsSeen)(case.checkpoint)
    ids = list(case.trace.src_ids)
    changed_by = []
    for option in answer.options[:-1]:
        n, written = int(option.word.removeprefix("pads-")), [config.decoder_start_id]
        while len(written) < 60 and written[-1] != config.eos_id:
            written.append(int(logits_of(blind, ids + [pads] * n, written)[-1].argmax()))
        text = case.checkpoint.tgt_tokenizer.decode(tuple(i for i in written[1:] if i != config.eos_id))
        changed_by.append((n, text != case.trace.output_text))
    first = next((n for n, differs in changed_by if differs), None)
    assert answer.right == ("never" if first is None else f"pads-{first}")


def test_the_first_nan_is_in_the_weights(case):
    answer = faults_questions.first_nan(case)
    assert answer.right == "weights"
    assert answer.values["site"] == "decoder.0.self_attn.weights"
    assert answer.values["rows"] == answer.values["n"] == len(case.trace.read_ids)
    assert 0 < answer.values["bad"] < answer.values["all"]


def test_pieces_are_shifted_as_a_tokenizer_with_one_piece_more_would(case):
    posed = picked(faults_questions.shifted_pieces, case)
    ids, special = list(case.trace.src_ids), case.checkpoint.src_tokenizer.is_special
    shifted = [i if special(i) and i != case.checkpoint.config.unk_id else i + 1 for i in ids]
    assert not any(special(i) for i in shifted[:-1])
    answer = faults_questions.sureness_of_nonsense(posed)
    other = case.changed(*parse(answer.values["do"]))
    assert list(other.src_ids) == shifted
    assert answer.values["after"] == other.output_text
    assert answer.values["sure_after"] == pytest.approx(-np.mean(chosen(other)), abs=1e-3)
    gap = np.mean(chosen(other)) - np.mean(chosen(case.trace))
    assert answer.right == ("same" if abs(gap) < faults_questions.SURE_NATS else "less" if gap < 0 else "more")


def chosen(trace):
    """The log-probabilities of what was written."""
    return trace.log_probs[np.arange(trace.n_steps), list(trace.tgt_ids)]
