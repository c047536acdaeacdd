"""What proposes an output before the model checks it."""
