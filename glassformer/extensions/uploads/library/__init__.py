"""Open what a visitor of a server hands in: a process of its own reads it, and only what that wrote anew is opened.

Read `archives` and `upload_folder`: what happens to the files; then `upload_worker`, where it happens (confined by
`transformer.sandbox`); then `upload_worker_client`, which is how a server asks for it.
"""
