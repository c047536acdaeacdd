"""Wirings: a catalogue of mistakes in a Transformer's code, and the search for the one that explains pairs."""
