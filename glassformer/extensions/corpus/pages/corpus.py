"""Over a corpus: what the heads of a model do over many sentences, as a corpus run has measured it."""

from ui.corpus import corpus_panels
from ui.corpus.corpus_pictures import CORPUS
from ui.frame.sidebar import sidebar
from ui.frame.source_box import head_without_run
from ui.runs.open_run import publish
from ui.state import session

session.begin(CORPUS.path)
checkpoint = sidebar(CORPUS.title)
head_without_run(CORPUS.title)
corpus_panels.draw(checkpoint)
publish(checkpoint)
