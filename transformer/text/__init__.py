"""From text to ids and back: what sentences go through, and SentencePiece, read with suspicion."""

SPACE_MARK = "▁"  # SentencePiece writes a space as this sign, so that pieces can be joined again
