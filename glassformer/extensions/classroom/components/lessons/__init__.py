"""What a browser remembers of lessons."""
