"""What is asked about faults has the answer of models that have the fault built in."""

import numpy as np
import pytest
import torch

from glassformer.extensions.lessons.library.subjects import masks_questions
from tests.extensions.doctor.library.planted import of_class
from tests.extensions.doctor.library.planted import told as told_of
from tests.extensions.lessons.library.posed import approx, case, picked, told
from transformer.model.masks import causal_mask, combine_masks, padding_mask
from transformer.model.transformer import Transformer
from transformer.runs.interventions import parse

OWN = {"zh-en": "老师昨天没有看见那只猫。", "en-fr": "She often wants a book.", "reverse": "housekeeper"}


@pytest.fixture(params=OWN)
def run(request):
    return case(request.param, OWN[request.param])


def masked(sees):
    """A model whose causal mask is another, by a function of the number of target tokens; padding stays closed."""

    class Masked(Transformer):
        def target_mask(self, tgt_ids, *, n_past=0, tap=None):
            return combine_masks(sees(tgt_ids.size(1)), padding_mask(tgt_ids, pad_id=self.config.pad_id))

    return of_class(Masked)


class SourcePadsSeen(Transformer):
    """Padding of the source is read like any token."""

    def source_mask(self, src_ids):
        return padding_mask(src_ids, pad_id=None)


def logits_of(checkpoint, src_ids, tgt_ids):
    with torch.inference_mode():
        return checkpoint.model(torch.tensor([src_ids]), torch.tensor([tgt_ids]))[0].double()


def loss_of(checkpoint, run):
    """The mean of -ln p of the run's output, read at once."""
    logits = logits_of(checkpoint, run.trace.src_ids, [checkpoint.config.decoder_start_id, *run.trace.tgt_ids[:-1]])
    return float(torch.nn.functional.cross_entropy(logits, torch.tensor(run.trace.tgt_ids)))


def test_parameters_read_with_another_number_of_heads(run):
    posed = picked(masks_questions.wrong_heads, run)
    answer = masks_questions.misread_heads(posed)
    misread = told_of(n_heads=posed.picked["told"])(run.checkpoint)
    output = misread.run(run.trace.query.source).output_text
    loss, loss_told = (approx(loss_of(one, run), abs=1e-4) for one in (run.checkpoint, misread))
    right = "same" if output == run.trace.output_text else "other"
    told(answer, right, after=output, loss=loss, loss_told=loss_told)
    assert run.changed(*parse(answer.values["do"])).output_text == output


SEVERAL = (OWN["zh-en"], "他喜欢吃苹果和面包。", "孩子们昨天在家看见一本书。", "我没有看见那只猫和火车。")


@pytest.mark.parametrize("sentence", SEVERAL)
def test_rows_that_move_are_those_of_a_model_with_that_fault(sentence):
    run = picked(masks_questions.mask_evidence, case("zh-en", sentence))
    plants = {
        "none": lambda same: same,
        "off": masked(lambda n: torch.ones(1, 1, n, n, dtype=torch.bool)),
        "peek": masked(lambda n: causal_mask(n, offset=1)[..., :n]),
    }
    found, read = run.picked, list(run.trace.read_ids)
    assert masks_questions.planted_mask(run).right == found["planted"]
    other = list(read)
    other[found["place"] - 1] = run.checkpoint.tgt_tokenizer.id_of(found["other"])
    for name, plant in plants.items():
        before, after = (logits_of(plant(run.checkpoint), run.trace.src_ids, ids) for ids in (read, other))
        rows = np.flatnonzero((before != after).any(dim=-1)) + 1
        assert ((rows[0], rows[-1]) == (found["a"], found["b"])) == (name == found["planted"]), name


def test_evidence_of_all_faults_is_planted_somewhere():
    words = ("houses", "garden", "window", "bridge", "planet", "silver", "orange", "forest")
    assert len({masks_questions.mask_evidence(case("reverse", word))["planted"] for word in words}) > 2


@pytest.mark.parametrize(("name", "sentence"), [("en-fr", OWN["en-fr"]), ("reverse", "glass")])
def test_pads_change_an_output_from_that_number_on(name, sentence):
    run = case(name, sentence)
    config, ids, decode = run.checkpoint.config, list(run.trace.src_ids), run.checkpoint.tgt_tokenizer.decode
    answer, blind, expected = (
        masks_questions.pads_until_it_shows(run),
        of_class(SourcePadsSeen)(run.checkpoint),
        "never",
    )
    for option in reversed(answer.options[:-1]):
        n, written = int(option.word.removeprefix("pads-")), [config.decoder_start_id]
        while len(written) < 60 and written[-1] != config.eos_id:
            written.append(int(logits_of(blind, ids + [config.pad_id] * n, written)[-1].argmax()))
        if decode(tuple(i for i in written[1:] if i != config.eos_id)) != run.trace.output_text:
            expected = option.word
    assert answer.right == expected


def test_the_first_nan_is_in_the_weights(run):
    answer, n = masks_questions.first_nan(run), len(run.trace.read_ids)
    told(answer, "weights", site="decoder.0.self_attn.weights", rows=n, n=n)
    assert 0 < answer.values["bad"] < answer.values["all"]


def test_pieces_are_shifted_as_a_tokenizer_with_one_piece_more_would(run):
    posed = picked(masks_questions.shifted_pieces, run)
    special, unknown = run.checkpoint.src_tokenizer.is_special, run.checkpoint.config.unk_id
    shifted = [i if special(i) and i != unknown else i + 1 for i in run.trace.src_ids]
    assert not any(map(special, shifted[:-1]))
    answer = masks_questions.sureness_of_nonsense(posed)
    other = run.changed(*parse(answer.values["do"]))
    assert list(other.src_ids) == shifted
    before, after = (
        float(np.mean(one.log_probs[np.arange(one.n_steps), list(one.tgt_ids)])) for one in (run.trace, other)
    )
    same = abs(after - before) < masks_questions.SURE_NATS
    right = "same" if same else "less" if after < before else "more"
    told(answer, right, after=other.output_text, sure_after=approx(-after, abs=1e-3))
