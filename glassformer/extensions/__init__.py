"""The list of extensions: each is a folder here, and goes when its folder is deleted (`transformer.extensions`)."""

NAMES = (
    "what_if", "drafts", "importers", "maps", "training", "doctor", "corpus", "saving", "classroom", "replicas",
)  # fmt: skip
