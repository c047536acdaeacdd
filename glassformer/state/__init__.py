"""What a session asks for and looks at, and how an address says it."""
