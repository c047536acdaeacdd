"""An example of a lesson's file, for whoever writes one; a test reads it."""

from typing import Final

EXAMPLE: Final = """\
name = "our-first"                      # stands in the address
title = "What does it read?"
teaches = "What the decoder reads before it has written anything."
minutes = 3

[[step]]
page = "step"                           # step, attention, positions, masks, inside, ...
link = { step = "1" }                   # parameters of the page's address
cover = ["*"]                           # what is not shown before the answer
[step.ask]
oracle = "read_piece"                   # computes the answer from the run
kind = "law"                            # the same answer for every sentence; or "finding"
question = "What does the decoder read first?"
[step.ask.choices]
nothing = "nothing at all"
[step.reveal]
always = "It reads {start}, a mark that only says: begin."

[[step]]
page = "step"
pick = "last_step"                      # finds what the link looks at
link = { step = "{step}" }
cover = ["entropy", "candidates"]
[step.ask]
oracle = "hardest_step"
kind = "finding"
in_order = true
question = "Where was it least sure?"
[step.ask.choices]
equal = "everywhere alike"
[step.reveal]                           # a text for each outcome
clear = "At {piece} the entropy is {h:.2f} bits."
equal = "All steps lie within {d:.2f} bits."
equal_smoothed = "All steps lie within {d:.2f} bits, and none is quite certain."
"""
