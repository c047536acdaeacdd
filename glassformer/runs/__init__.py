"""Opening and drawing runs: from session state to charts."""
