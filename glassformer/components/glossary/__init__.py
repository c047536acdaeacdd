"""The glossary in the browser: terms underlined on every page."""
