"""Attribution of one decoding step: to input pieces, and to parts of the model."""
