"""Interventions of every kind, made of nothing but what the kinds say of their fields: new kinds are among them."""

import dataclasses

from hypothesis import strategies as st

from glassformer.extensions.what_if.interventions import KINDS
from transformer.errors import QueryError
from transformer.model.anatomy import anatomy
from transformer.runs.interventions.fields import MOST_LISTED, MOST_TEXT, Spelling, spelled

PLACES = ("layer", "head", "query", "key", "source", "step", "neuron")


def values_of(spelling: Spelling):
    """A strategy for all that a field allows."""
    if spelling.options:
        return st.sampled_from(list(spelling.options))
    if spelling.what in PLACES:
        found = st.integers(0, int(spelling.most) - 1)
        return st.none() | found if spelling.optional else found
    numbers = st.floats(spelling.least, spelling.most) | st.integers(int(spelling.least), int(spelling.most))
    return {
        "number": numbers,
        "numbers": st.lists(numbers, min_size=1, max_size=MOST_LISTED),
        "yes": st.booleans(),
        "text": st.text(min_size=1, max_size=MOST_TEXT).filter(str.strip),
    }.get(spelling.what, st.integers(int(spelling.least), int(spelling.most)))


@st.composite
def any_change(draw):
    """Any intervention of any kind."""
    kind = draw(st.sampled_from(list(KINDS.values())))
    values = {field: draw(values_of(spelling)) for field, (_, spelling) in spelled(kind).items()}
    try:
        return kind(**values)
    except QueryError:  # the values are allowed each, and not together
        return draw(any_change())


def example(kind, checkpoint, text):
    """One that fits a model and a sentence, if any does: of first tokens, layers and heads, and of the same text."""
    config, found = checkpoint.config, {}
    parts = anatomy(config)
    ids = checkpoint.src_tokenizer.encode(text).ids
    written = next(i for i in range(config.tgt_vocab_size) if i not in (*config.never_written, *config.end_ids))
    for field in dataclasses.fields(kind):
        _, spelling = spelled(kind)[field.name]
        own = {
            "attention": "cross" if "cross" in parts.kinds else parts.kinds[0],
            "source": list(found.values()).count(0),  # another one than before
            "source_piece": ids[-1],
            "target_piece": written,
            "text": text,
            "numbers": (1.0, 0.5),
        }
        if spelling.what in own and "all" not in spelling.options:
            found[field.name] = own[spelling.what]
        elif field.default is not dataclasses.MISSING:
            found[field.name] = field.default
        elif "encoder" in spelling.options:
            found[field.name] = parts.stacks[0].name
        else:
            found[field.name] = 0 if spelling.what in PLACES else int(spelling.least)
    return kind(**found)
