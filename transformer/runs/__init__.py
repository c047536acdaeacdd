"""Running a model: what is asked for, decoding, and the trace of what happened."""
