"""Open what toolkits for translation save: fairseq, OpenNMT-py, Joey NMT and Marian, a module each.

Read `toolkit`, which says what a module has to tell, then `fairseq`, then `importing`, which makes a model of it.
"""
