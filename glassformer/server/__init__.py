"""The server: the queue before the model, turns of pages, jobs, switches, and private parts of Streamlit."""
