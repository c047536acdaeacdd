"""The terms of the glossary, where each is seen, and its page."""
