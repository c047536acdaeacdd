"""Our browser components: the Plotly view that draws every chart, the stepper, the flow, the glossary's marks.

Each is an inline Streamlit component (version 2): Python builds plain data, a script of ours draws it as text
and shapes, and clicks or settled steps come back as plain values that are checked again here.
"""
