"""The page For teachers: links for a class, a plan, handouts, what own lessons can ask."""
