"""Uploads: read in a sandboxed process, rewritten, and only then opened.

Read `archives` and `upload_folder`, which process the files; then `upload_worker`, the sandboxed process (confined by
`transformer.sandbox`); then `upload_worker_client`, the server's interface.
"""
