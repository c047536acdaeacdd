"""Importers for translation toolkits: fairseq, OpenNMT-py, Joey NMT, Marian.

Read `toolkit`, which defines an importer, then `fairseq`, then `importing`, which makes the model.
"""
