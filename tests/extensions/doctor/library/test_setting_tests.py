"""A wrong setting is found by its neighbours and blamed alone; what is wrong otherwise is not a setting."""

from dataclasses import replace

import pytest

from glassformer.extensions.doctor.library.context import BELOW, LEAK, ExaminationContext
from glassformer.extensions.doctor.library.report import TESTS, run_test
from glassformer.extensions.doctor.library.setting_tests import TESTS as SETTINGS
from glassformer.extensions.doctor.library.setting_tests import fitting, neighbour_of, with_setting
from tests.extensions.doctor.library.changed import changed, found
from tests.transformer.featured import featured
from transformer.analysis.losses import Samples, Variants
from transformer.model.transformer import Transformer

NAMES = tuple(one.name for one in SETTINGS)
UP_TO_SETTINGS = tuple(test for test in TESTS if test.cause in (LEAK, BELOW) or test in SETTINGS)
WORDS = ["planet", "window", "harbour", "silver", "gardens", "monkey", "bridge", "yellow", "candle", "forest"]
PAIRS = Samples(tuple(WORDS), tuple(word[::-1] for word in WORDS))


def told(checkpoint, **changes):
    """The same parameters under another config."""
    variant = Variants(checkpoint).get(changes)
    return replace(checkpoint, model=variant.model, config=variant.model.config)


def blamed(checkpoint, pairs=PAIRS):
    patient = ExaminationContext(checkpoint, pairs)
    verdicts = {test.name: run_test(test, patient).verdict for test in UP_TO_SETTINGS}
    return {name for name in NAMES if verdicts[name] == "broken"}


def moved_positions(by):
    def change(model):
        table = model.decoder.embedding.positions.table
        table.copy_(table.roll(by, dims=0))

    return change


def test_a_setting_that_does_not_explain_is_no_lead(reverse):
    """Any change makes a model that is sure and wrong less sure: here of words without their first letters."""
    later = Samples(PAIRS.sources, tuple(word[1:] for word in PAIRS.targets))
    findings = [found(reverse, name, pairs=later) for name in NAMES]
    assert {one.verdict for one in findings} <= {"well", "not_applicable"}
    assert any("this setting alone does not explain it" in one.measured.said for one in findings)


@pytest.mark.parametrize(
    ("name", "changes"), [("norm", {"norm": "post"}), ("scale_embedding", {"scale_embedding": False})]
)
def test_a_wrong_setting_is_blamed_and_no_other(name, changes, reverse):
    spoilt = told(reverse, **changes)
    assert blamed(spoilt) == {name}
    right = found(spoilt, name, pairs=PAIRS).measured
    value = getattr(reverse.config, name)
    assert right.places == (f"{name} = {str(value).lower() if isinstance(value, bool) else value}",)
    assert f"{right.number:.3g}" != "0"


def test_positions_that_begin_elsewhere_are_found_with_their_place(reverse):
    spoilt = changed(reverse, moved_positions(1))
    assert blamed(spoilt) == {"position_shift"}
    measured = found(spoilt, "position_shift", pairs=PAIRS).measured
    assert measured.places == ("positions +1 (decoder)",)
    assert (
        measured.headline
        == "In training, the model's positions began 1 row later in their table than they do now (decoder)."
    )
    assert "The cause is the line that adds the positions" in measured.causes


def test_a_forgotten_scale_of_the_scores_is_named_in_words(reverse):
    def as_undivided(model):
        for name, one in model.named_parameters():
            if "q_proj" in name:
                one.mul_(reverse.config.d_head**-0.5)

    measured = found(changed(reverse, as_undivided), "score_scale", pairs=PAIRS).measured
    assert measured.places == ("score_scale = 1 (q·k)",)
    assert measured.headline.startswith("The model was trained without dividing the attention scores by √d_head")


def test_what_is_wrong_below_is_not_a_setting(reverse):
    def blind(model):
        for attention in model.attentions("cross"):
            attention.out_proj.weight.zero_()
            attention.out_proj.bias.zero_()

    patient = ExaminationContext(changed(reverse, blind), PAIRS)
    findings = {test.name: run_test(test, patient) for test in UP_TO_SETTINGS}
    assert findings["source"].verdict == "broken"
    assert all(findings[name].verdict == "not_applicable" for name in NAMES)
    assert "only after these tests pass: source" in findings["norm"].measured.said


def test_a_neighbour_has_the_model_s_own_mistakes(tmp_path):
    """One that computed rightly what the model computes wrongly would always be better."""

    class Other(Transformer):
        """Computes something in another way."""

    def mistaken(model):
        positions = model.encoder.embedding.positions
        positions.table = positions.table.roll(1, dims=0)
        model.__class__ = Other

    patient = ExaminationContext(changed(featured("halves", tmp_path), mistaken))
    made = neighbour_of(patient, with_setting(norm="pre"))
    assert type(made.model) is Other
    assert made.model.encoder.embedding.positions is patient.model.encoder.embedding.positions
    assert made.model.encoder.layers[0].ffn_residual.around.post is False
    assert patient.model.encoder.layers[0].ffn_residual.around.post is True


def test_few_texts_or_its_own_output_do_not_decide(reverse):
    few = Samples(PAIRS.sources[:2], PAIRS.targets[:2])
    measured = found(told(reverse, norm="post"), "norm", pairs=few).measured
    assert measured.verdict == "not_applicable"
    assert "2 texts" in measured.said
    long = Samples(("a" * 40, *PAIRS.sources), ("a" * 40, *PAIRS.targets))  # that do not fit are left out
    assert set(fitting(ExaminationContext(reverse, long)).sources) == set(PAIRS.sources)
    measured = found(told(reverse, norm="post"), "norm", pairs=Samples(PAIRS.sources)).measured
    assert measured.verdict in ("look", "well")


def test_without_pairs_a_neighbour_that_is_better_on_each_text_is_worth_a_look(reverse):
    patient = ExaminationContext(told(reverse, n_heads=8, d_head=8, n_kv_heads=8), Samples(reverse.card.examples))
    heads = next(test for test in TESTS if test.name == "n_heads")
    assert run_test(heads, patient).verdict == "look"
    assert run_test(heads, ExaminationContext(reverse)).verdict == "well"
