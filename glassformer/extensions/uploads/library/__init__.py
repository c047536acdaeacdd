"""Open what a visitor of a server hands in: a process of its own reads it, and only what that wrote anew is opened.

Read `handed_limits`, then `archives`, `handed_folder` and `canonical`: what happens to the files; then `worker`,
where it happens (confined by `transformer.sandbox`); then `workers`, which is how a server asks for it.
"""
