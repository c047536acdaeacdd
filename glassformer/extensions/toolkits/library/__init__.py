"""Importers for translation toolkits: fairseq, OpenNMT-py, Joey NMT, Marian.

Read `toolkit`, which says what a module has to tell, then `fairseq`, then `importing`, which makes a model of it.
"""
