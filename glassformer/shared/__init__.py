"""UI building blocks: menu, controls, charts, style, localised Streamlit."""
