"""Toolkits for translation: files that fairseq, Joey NMT, Marian and OpenNMT-py save.

Read `toolkit`, which defines an importer, then `fairseq`, then `importing`, which makes the model.
"""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="toolkits",
    needs=("tokenizers", "weight_files", "importers"),
    modules={"transformer.importers.toolkits": "glassformer.extensions.toolkits"},
    readers="glassformer.extensions.toolkits.importing:READER",
)
