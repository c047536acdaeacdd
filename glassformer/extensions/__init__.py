"""The list of extensions: each is a folder here, and goes when its folder is deleted (`transformer.extensions`)."""

from glassformer import SHIPPED

CHECKPOINTS = SHIPPED  # where the library finds names such as `zh-en` (`transformer.checkpoint.named`)
NAMES = (
    "what_if", "wirings", "effects", "drafts", "tokenizers", "weight_files", "saving", "uploads", "hub", "importers",
    "huggingface", "toolkits", "maps", "capture", "live", "rooms", "doctor", "parameters", "training", "snapshots",
    "training_page", "training_votes", "sentences", "corpus", "lessons", "classroom", "replicas",
)  # fmt: skip
