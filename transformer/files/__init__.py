"""Safe reading of untrusted files, with size limits."""
