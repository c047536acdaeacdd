"""Commands for readers to copy: what makes a corpus run, and what tells the app where it is."""

from typing import Final

COMMAND: Final = "python -m transformer corpus {folder} --pairs FILE --out DIR"
SETTING: Final = "streamlit run app.py -- --corpora DIR\nGLASSFORMER_CORPORA=DIR"
