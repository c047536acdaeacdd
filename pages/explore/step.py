"""Translate: a sentence becomes another one, piece by piece."""

from glassformer.frame.run_page import run_page
from glassformer.shared.i18n import st
from glassformer.step import step_panels
from glassformer.step.step_pictures import STEP
from transformer.i18n import say

with st.container(key="intro"):
    st.markdown(say("Type a sentence and watch a Transformer work on it, one token at a time."))
run_page(STEP, step_panels.draw, decodes=True)
