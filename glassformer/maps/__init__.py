"""Maps as several pages draw them: all heads as small maps."""
