"""The page Open a checkpoint: uploads, the report, its questions, a sentence to try."""
