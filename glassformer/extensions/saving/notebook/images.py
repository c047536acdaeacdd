"""Pictures as PNG or SVG, drawn by kaleido, which is an extra and uses the Chrome or Chromium that is installed.

Knows nothing of Streamlit.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Literal

from glassformer.charts.theme import Spec, figure_in
from transformer.errors import GlassformerError, shown

Format = Literal["png", "svg"]
MM_PER_INCH: Final = 25.4
CSS_DPI: Final = 96  # pixels of a browser in an inch
LEAST_MM, MOST_MM = 30, 1000
MOST_DPI: Final = 1200


def images(
    specs: Sequence[Spec], language: str, *, form: Format, width: float, height: float | None = None, dpi: float = 300
) -> list[bytes]:
    """Draw pictures.

    Args:
        specs: What `..._spec` of `charts` made.
        language: One of `words.languages()`.
        form: PNG, or SVG, whose text stays text.
        width: In millimetres.
        height: In millimetres; None for the one that each picture suggests.
        dpi: Pixels of a PNG in an inch.

    Raises:
        GlassformerError: A size is out of range, kaleido or a browser is missing, or the browser fails.
    """
    for size in (width, width if height is None else height):
        if not LEAST_MM <= size <= MOST_MM:
            raise GlassformerError(
                "{size} mm is not a valid picture size; use {least} to {most} mm.",
                size=shown(size), least=LEAST_MM, most=MOST_MM,
            )  # fmt: skip
    if not CSS_DPI <= dpi <= MOST_DPI:
        raise GlassformerError(
            "{dpi} dpi is out of range; use {least} to {most} dpi.", dpi=shown(dpi), least=CSS_DPI, most=MOST_DPI
        )
    pixels = round(width / MM_PER_INCH * CSS_DPI)
    tall = [height / MM_PER_INCH * CSS_DPI if height else spec["layout"]["height"] for spec in specs]
    options = [
        {"format": form, "width": pixels, "height": round(one), "scale": dpi / CSS_DPI if form == "png" else 1}
        for one in tall
    ]
    figures = [figure_in(spec, language).update_layout(paper_bgcolor="white") for spec in specs]
    try:
        from kaleido import Kaleido
    except ModuleNotFoundError as error:
        raise GlassformerError(
            "PNG and SVG files need {name}; install it with `pip install 'glassformer[pictures]'`. HTML files need "
            "nothing extra.",
            name=error.name,
        ) from error

    async def drawn() -> list[bytes]:
        async with Kaleido(mathjax=False) as browser:  # which would be fetched from elsewhere
            return [await browser.calc_fig(*one) for one in zip(figures, options, strict=True)]

    try:
        with ThreadPoolExecutor(1) as other:  # as a notebook has a loop of its own in this thread
            return other.submit(asyncio.run, drawn()).result()
    except Exception as error:  # of several libraries, without a base in common
        raise GlassformerError(
            "the browser could not draw the picture: {problem}. Install Chrome or Chromium.",
            problem=str(error).rstrip("."),
        ) from error
