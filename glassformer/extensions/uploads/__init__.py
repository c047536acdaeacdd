"""Uploads: models of users, read in a sandboxed process and kept for a while."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="uploads",
    needs=("weight_files", "importers"),
    modules={"transformer.importers.handed_in": "glassformer.extensions.uploads.library"},
    sources="glassformer.extensions.uploads.upload_form:SOURCE",
    server="glassformer.extensions.uploads.session_uploads:SERVER",
)
