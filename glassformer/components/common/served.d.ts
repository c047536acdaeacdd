// `served.js` has no source: `custom_component.py` writes it, out of what Python and the style sheets say.

/** Dark twins of the charts' colours. */
export const DARK_COLORS: Record<string, string>;
/** The text of the style sheets, by the folder they are for. */
export const STYLES: Record<"bundle" | "common" | "plotly" | "stepper" | "flow" | "present" | "glossary" | "room" | "lessons" | "moments", string>;
/** What the parts of Streamlit's page are called, as selectors. */
export const SELECTORS: Record<string, string>;
/** The file name of Plotly's script, which lies beside ours. */
export const PLOTLY_FILE: string;
