"""Corpus runs: head statistics over many sentences, stored as Parquet shards, queried with SQL."""
