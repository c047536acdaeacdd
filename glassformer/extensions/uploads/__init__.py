"""Uploads: models that a visitor hands in, read in a process of their own and kept for a while."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="uploads",
    needs=("weight_files", "importers"),
    modules={"transformer.importers.handed_in": "glassformer.extensions.uploads.library"},
    sources="glassformer.extensions.uploads.source:SOURCE",
    server="glassformer.extensions.uploads.session_uploads:SERVER",
)
