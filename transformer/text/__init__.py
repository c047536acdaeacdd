"""Text processing: normalisation and tokenizers."""

SPACE_MARK = "▁"  # SentencePiece writes a space as this sign, so pieces can be joined again
