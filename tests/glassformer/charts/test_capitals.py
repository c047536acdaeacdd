"""A sentence gets a capital; what it begins with stays as it is, if that is data."""

from glassformer.charts.theme import capitalised
from transformer.i18n import joined, say


def test_a_path_at_the_beginning_stays_as_it_was_typed():
    assert capitalised(say("the loss is {n}", n=2)) == "The loss is 2"
    assert capitalised("the loss") == "The loss"
    assert capitalised(say("{path}: is missing.", path="appfiles/config.json")) == "appfiles/config.json: is missing."
    assert capitalised(say("“{name}” is new", name="reverse")) == "“reverse” is new"
    inner = say("{label}: {problem}", label="tokenizer.json", problem=say("it is damaged"))
    assert capitalised(say("{said}", said=inner)) == "tokenizer.json: it is damaged"
    assert capitalised(joined(" ", ["", inner])) == " tokenizer.json: it is damaged"
    assert capitalised(say("{measure}: more", measure=say("mean loss"))) == "Mean loss: more"
