"""What stands around a page about a sentence: the sidebar, the source box, the sentence with its stepper."""
