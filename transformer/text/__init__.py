"""From text to ids and back: what sentences go through, and SentencePiece, read with suspicion."""
