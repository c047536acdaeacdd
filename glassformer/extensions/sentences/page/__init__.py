"""The page A file of sentences: what is asked, the jobs in the background, the table."""
