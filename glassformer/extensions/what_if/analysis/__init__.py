"""What is changed by removing heads, and two runs compared."""
