"""Text processing: normalisation and tokenizers."""

SPACE_MARK = "▁"  # SentencePiece writes a space as this sign, so that pieces can be joined again
