"""Running a model: request, decoding, trace."""
