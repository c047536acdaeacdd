"""The page Teacher forcing: the reference, its losses, and what the model writes by itself."""
