"""Uploads: read in a sandboxed process, rewritten, and only then opened.

Read `archives` and `upload_folder`, which process the files; then `upload_worker`, the sandboxed process (confined by
`transformer.sandbox`) and the server's interface to it.
"""
