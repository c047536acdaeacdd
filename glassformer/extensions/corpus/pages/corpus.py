"""Over a corpus: what the heads of a model do over many sentences, as a corpus run has measured it."""

from glassformer.extensions.corpus.page import corpus_panels
from glassformer.extensions.corpus.page.corpus_pictures import CORPUS
from glassformer.frame.run_page import sidebar
from glassformer.frame.source_box import head_without_run
from glassformer.runs.open_run import publish
from glassformer.state import session

session.begin(CORPUS.path)
checkpoint = sidebar(CORPUS.title)
head_without_run(CORPUS.title)
corpus_panels.draw(checkpoint)
publish(checkpoint)
