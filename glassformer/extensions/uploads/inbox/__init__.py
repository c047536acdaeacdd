"""What visitors upload: the endpoint, the queue before the process that reads it, and the store."""
