"""Credit for one step of a run: what its piece owes to the pieces read, and to the parts of the model."""
