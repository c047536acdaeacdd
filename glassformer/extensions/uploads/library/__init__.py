"""Uploads: read in a sandboxed process, rewritten, and only then opened.

Read `archives` and `upload_folder`: what happens to the files; then `upload_worker`, where it happens (confined by
`transformer.sandbox`); then `upload_worker_client`, which is how a server asks for it.
"""
