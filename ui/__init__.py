"""The app: what its pages share, and a folder a page. A folder imports only what stands below it."""
