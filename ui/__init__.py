"""The app: what its pages share, and one folder per page. A folder imports only what is below it."""
