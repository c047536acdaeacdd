"""Read folders that Hugging Face's transformers saved: names, config and tokenizers, family by family."""
