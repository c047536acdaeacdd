"""Terms of masks and positions: who sees whom, and what gives order."""

from __future__ import annotations

from ui.glossary.term import Term
from words import say

TERMS = (
    Term(say("mask", about="glossary"), say("Says which keys each query may see."), seen="masks"),
    Term(
        say("causal mask", about="glossary"),
        say("Closes everything that comes later in the output."),
        seen="causal",
        also=say("causal", about="glossary"),
    ),
    Term(say("padding mask", about="glossary"), say("Closes padding, so that nobody reads it."), seen="masks"),
    Term(
        say("combined mask", about="glossary"),
        say("A key may be seen only where all masks allow it."),
        seen="combined",
    ),
    Term(
        say("Boolean mask", about="glossary"),
        say("A mask of True and False; here True means may attend."),
        seen="masks",
    ),
    Term(
        say("additive mask", about="glossary"),
        say("A mask that is added to the scores: 0 leaves a key open, −∞ closes it."),
        seen="masks",
    ),
    Term(
        say("broadcasting", about="glossary"),
        say("Using a tensor of size 1 along an axis as if it were repeated."),
        seen="masks",
    ),
    Term(
        say("causality check", about="glossary"),
        say("Change a later piece and see whether earlier outputs move."),
        seen="checks",
    ),
    Term(say("leak", about="glossary"), say("When a model can read what it is to predict."), seen="checks"),
    Term(
        say("NaN", about="glossary"),
        say("The result of an impossible calculation, such as the softmax of a row of −∞ only; it spreads."),
        seen="masks",
    ),
    Term(
        say("positional encoding", about="glossary"),
        say("A vector for each place, added to the embedding so that order can be seen."),
        seen="table",
        also=say("table of positions|position vector", about="glossary"),
    ),
    Term(
        say("learned positions", about="glossary"),
        say("Position vectors that training has set, instead of a formula."),
        also=say("learned position|learned table", about="glossary"),
    ),
    Term(say("sinusoid", about="glossary"), say("A curve that swings evenly between −1 and 1."), seen="table"),
    Term(say("wavelength", about="glossary"), say("After how many positions a sinusoid repeats."), seen="table"),
    Term(
        say("frequency", about="glossary"),
        say("How fast a sinusoid turns from one position to the next."),
        seen="shift",
    ),
    Term(
        say("relative position", about="glossary"),
        say("How far apart two tokens are, wherever they stand."),
        seen="shift",
    ),
    Term(say("shift", about="glossary"), say("Moving all positions by the same number."), seen="shift"),
    Term(
        say("rotation", about="glossary"),
        say("Turning pairs of numbers by an angle; for sinusoids it does the same as a shift."),
        seen="shift",
    ),
    Term(say("extrapolation", about="glossary"), say("Working on sequences longer than those seen in training.")),
    Term(
        say("rotary position embedding (RoPE)", about="glossary"),
        say("Turns queries and keys by their position, so that scores depend on distance."),
    ),
    Term(
        say("ALiBi", about="glossary"),
        say("Takes from each score an amount that grows with distance, in place of position vectors."),
    ),
)
