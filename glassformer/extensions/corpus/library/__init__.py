"""What a model and its heads do over many sentences: measured in shards, kept as Parquet files, asked with SQL."""
