"""The parts of the page Over a corpus, a module each."""
