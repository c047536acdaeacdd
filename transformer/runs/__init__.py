"""Running a model: the query, decoding, and the trace of what happened."""
