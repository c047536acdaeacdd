"""Whether the tokenizers are those of the model.

What a tokenizer does by itself is tested with its own pieces and the patient's texts; whether source and target were
exchanged, with the model's losses either way. Knows nothing of Streamlit.
"""

from __future__ import annotations

from transformer.doctor import piece_tests as pieces
from transformer.doctor.findings import Measured, not_applicable, well
from transformer.doctor.patient import Patient, Test
from transformer.errors import GlassformerError
from transformer.text.normalise import normalise
from transformer.text.tokenizer import AnyTokenizer
from transformer.trying.losses import Loss, loss_of
from transformer.trying.variants import Variant
from words import Sentence, say

FAR_BETTER = 0.25
"""Nats a piece."""


def sizes(patient: Patient) -> Measured:
    """Whether every piece has a row, and every row a piece."""
    model, checkpoint, config = patient.model, patient.checkpoint, patient.config
    found = [("src_table", len(model.src_table), checkpoint.src_tokenizer.size, config.src_vocab_size)]
    if patient.anatomy.gives_logits or not config.shared_vocab:
        n_target = checkpoint.tgt_tokenizer.size
        found.append(("target_table", len(model.target_table), n_target, config.tgt_vocab_size))
    if patient.anatomy.gives_logits:
        found.append(
            ("output_weight", len(model.output_weight), checkpoint.tgt_tokenizer.size, config.tgt_vocab_size)
        )
    apart = max(abs(rows - pieces) + abs(rows - said) for _, rows, pieces, said in found)
    name, rows, pieces, said = next((one for one in found if not one[1] == one[2] == one[3]), found[0])
    text = say(
        "{name} has {rows:,} rows, its tokenizer {pieces:,} pieces, and the config says {said:,}.",
        name=name, rows=rows, pieces=pieces, said=said,
    )  # fmt: skip
    why = say("A piece without a row cannot be read, and a row without a piece cannot be written.")
    if not apart:
        return well(text, 0.0, 1.0, why)
    return Measured(
        verdict="broken",
        number=float(apart),
        threshold=1.0,
        said=text,
        why=why,
        meaning=say("Some texts cannot be read at all, or pieces stand for other rows than those that were trained."),
        causes=say(
            "The tokenizer of another model or of another size, source and target exchanged, or "
            "pieces that were added to the tokenizer after training. Take the tokenizer file that the model was "
            "trained with."
        ),
        places=(name,),
    )


def exchanged(patient: Patient) -> Measured:
    """Whether the model does far better with source and target tokenizers exchanged."""
    checkpoint = patient.checkpoint
    source, target = checkpoint.src_tokenizer, checkpoint.tgt_tokenizer
    if not (patient.anatomy.reads and patient.anatomy.writes) or source is target:
        return not_applicable(say("There is one tokenizer only, so that nothing could be exchanged."))
    if not len(patient.samples):
        return not_applicable(say("There is no text to try both ways with. Give some."))
    if all(source.encode(text).ids == target.encode(text).ids for text in patient.samples.sources):
        return not_applicable(say("Both tokenizers split the texts alike, so that nothing could be exchanged."))
    here, there = _loss(patient, source, target), _loss(patient, target, source)
    if here is None and there is None:
        return not_applicable(say("The texts do not fit the model with the tokenizers either way."))
    if there is None:
        return well(say("Exchanged, the tokenizers do not fit the model at all."), 0.0, FAR_BETTER, _WHY_EXCHANGED)
    gain = None if here is None else here.mean - there.mean
    said = (
        say("Only with source and target exchanged do the tokenizers fit the model at all.")
        if here is None
        else say(
            "The loss is {here:.2f} nats a piece, and with the tokenizers of source and target exchanged "
            "{there:.2f}.",
            here=here.mean, there=there.mean,
        )
    )  # fmt: skip
    if gain is not None and gain < FAR_BETTER:
        return well(said, gain, FAR_BETTER, _WHY_EXCHANGED)
    return Measured(
        verdict="broken",
        number=gain,
        threshold=FAR_BETTER,
        said=said,
        why=_WHY_EXCHANGED,
        meaning=say(
            "The tokenizers of source and target are exchanged: what is typed becomes pieces of the other language, "
            "and what the model writes is spelled with those of the source."
        ),
        causes=say(
            "The two files were named or given in the wrong order, or the model translates in the "
            "other direction than the folder says. Exchange source.model and target.model, or give them in the "
            "other order."
        ),
    )


_WHY_EXCHANGED: Sentence = say(
    "How much the loss falls when they are exchanged, in nats a piece; in a healthy checkpoint it rises. "
    "{most:g} is more than chance makes of a few texts.",
    most=FAR_BETTER,
)


def _loss(patient: Patient, source: AnyTokenizer, target: AnyTokenizer) -> Loss | None:
    """The loss with these tokenizers; None if a text does not fit."""
    steps, samples = patient.config.normalisation, patient.samples
    read = [i for text in samples.sources for i in source.encode(normalise(text, steps)).ids]
    written = [i for text in samples.targets for i in target.encode(normalise(text, steps)).ids]
    if max(read, default=0) >= len(patient.model.src_table):
        return None
    if max(written, default=0) >= len(patient.model.target_table):
        return None
    patient.pause()
    try:
        return loss_of(Variant(patient.model, source, target), samples)
    except GlassformerError:
        return None


TESTS: tuple[Test, ...] = (
    Test("vocabulary_sizes", "tokenizer", say("Every piece has a row"), sizes),
    Test("exchanged_tokenizers", "tokenizer", say("Source and target are not exchanged"), exchanged),
    *pieces.TESTS,
)
