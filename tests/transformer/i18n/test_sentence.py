"""A sentence is English text wherever text is asked for, and says itself in other languages."""

import copy
import json
import pickle

import pytest

from transformer.i18n import PSEUDO, Sentence, joined, paragraph, said, said_throughout, say, say_n, through


@through
def shouted(text: str, mark: str = "!") -> str:
    return text.upper() + mark


def test_it_is_its_english_text():
    sentence = say("Step {n} looks at {what}.", n=3, what="▁like")
    assert sentence == "Step 3 looks at ▁like."
    assert hash(sentence) == hash("Step 3 looks at ▁like.")
    for text in (sentence.upper(), sentence + "!", f"{sentence}", sentence[:3], str(sentence), said(sentence, "en")):
        assert type(text) is str
    with pytest.raises(AttributeError, match="cannot be changed"):
        sentence.template = "Head"
    with pytest.raises(KeyError, match="what"):
        say("{what}")


def test_numbers_and_plurals_follow_the_template_and_what_was_typed_stays_as_it_is():
    numbers = say("{total:+.3f} nats, {tiny:.1e}, {up:+.1f}", total=-0.373, tiny=-2e-7, up=1)
    assert numbers == "−0.373 nats, −2.0 × 10⁻⁷, +1.0"
    assert said(say("{n:,} of {id}", n=-1200, id=-1), PSEUDO) == "⟦−1,200 oof -1⟧"
    assert say("{n:,} of {share:.0%}", n=12345, share=0.257) == "12,345 of 26%"
    forms = {0: "0 tokens", 1: "1 token", 1200: "1,200 tokens"}
    assert {n: say_n("{n:,} token", "{n:,} tokens", n) for n in forms} == forms
    assert say("{piece} in {{braces}}", piece="{n}") == "{n} in {braces}"
    assert said(say("{piece} in {{braces}}", piece="{n}"), PSEUDO) == "⟦{n} iin {braacees}⟧"


def test_a_quoted_sentence_that_ends_itself_gets_no_second_full_stop():
    def stays(output):
        return say("The output stays “{output}”. Step {n}.", output=output, n=1)

    for output in ("I like tea.", "Is it?", "▁tea .", "I like tea\\.", "**我喜欢茶。**", "\u2068Tea.\u2069"):
        assert stays(output) == f"The output stays “{output}” Step 1."
    for output in ("I like tea", ".", "</s>", "▁.", ""):
        assert stays(output) == f"The output stays “{output}”. Step 1."
    assert said(stays("Tea."), PSEUDO).count(".") == 2
    assert said(say("The output stays “{before}”.", before="茶。"), "zh") == "输出仍是“茶。”"


def test_sentences_inside_others_joined_or_in_a_paragraph_are_said_too_and_functions_applied_in_each_language():
    sentence = say("{pieces} in {where}.", pieces=say_n("{n} token", "{n} tokens", 2), where="data")
    assert (sentence, said(sentence, PSEUDO)) == ("2 tokens in data.", "⟦‹2 tookeens› iin data.·⟧")
    lines = joined("<br>", [say("Layer"), "data", say("Head")])
    assert (lines, said(lines, PSEUDO)) == ("Layer<br>data<br>Head", "⟦Laayeer⟧<br>data<br>⟦Heeaad⟧")
    loud = shouted(say("Layer"), "?")
    assert (loud, said(loud, PSEUDO), type(shouted("layer"))) == ("LAYER?", "⟦LAAYEER⟧?", str)

    @paragraph
    def told(n):
        yield say("Step {n}.", n=n)
        yield ""
        if n > 1:
            yield say("There are others.")

    both = (say("Step {n}.", n=2), say("There are others."))
    assert (told(2), said(told(2), PSEUDO)) == (" ".join(both), " ".join(said(one, PSEUDO) for one in both))
    assert isinstance(told(1), Sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        say("Step {n}", n=3),
        say_n("{n} token", "{n} tokens", 4),
        joined(" · ", [say("Layer"), "x"]),
        shouted(say("Layer"), mark="?"),
    ],
)
def test_it_survives_pickle_copies_and_json(sentence):
    for other in (pickle.loads(pickle.dumps(sentence)), copy.copy(sentence), copy.deepcopy(sentence)):
        assert other == sentence
        assert said(other, PSEUDO) == said(sentence, PSEUDO) != sentence
    assert json.loads(json.dumps({"a": sentence})) == {"a": str(sentence)}


def test_a_tree_is_said_throughout_and_what_has_no_sentence_is_the_same_object():
    numbers = [1.0, "x"]
    tree = {"title": {"text": say("Layer")}, "x": numbers, "rows": [("a", say("Head"))], say("key"): None}
    told = said_throughout(tree, PSEUDO)
    assert told == {"title": {"text": "⟦Laayeer⟧"}, "x": numbers, "rows": [("a", "⟦Heeaad⟧")], "⟦keey⟧": None}
    assert told["x"] is numbers
    assert isinstance(tree["title"]["text"], Sentence)
