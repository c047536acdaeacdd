"""Notebook display of one run, two runs or maps (iframe, static rendering), and pictures as PNG, SVG, PDF, HTML.

A notebook shows a saved run (`extensions.saving.saved_run`) in an iframe. A static rendering below it is for untrusted
notebooks, notebook viewers without scripts, and screen readers.

PNG and SVG need kaleido, an extra, and an installed Chrome or Chromium. Knows nothing of Streamlit's sessions.
"""

import asyncio
import base64
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from difflib import get_close_matches
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Literal
from warnings import warn

import plotly.graph_objects as go

from glassformer.charts.grid import unpacked
from glassformer.charts.theme import Spec, figure_in
from glassformer.components.embedding import chart_element, embedded
from glassformer.extensions.saving.recorded_checkpoint import recorded_of
from glassformer.extensions.saving.saved_run import SavedRunContent, file_of
from glassformer.extensions.saving.text_pictures import WRITERS
from glassformer.runs.map_axes import fit_given
from glassformer.runs.open_run import seen, stepper_run
from glassformer.runs.picture import PAGES, PICTURES, Picture, Plot, declare_all
from glassformer.runs.viewed_run import Viewed, ViewedRun, VisibleMaps
from glassformer.state.link import Link, address_words, read_link, write_link
from glassformer.state.view import MAIN, View, all_fields
from transformer.checkpoint.load import Checkpoint, in_memory, load
from transformer.errors import GlassformerError, QueryError, shown
from transformer.i18n import ENGLISH, languages, said, say
from transformer.runs.trace import LabelledMaps, Trace

declare_all()

Format = Literal["png", "svg", "pdf"]
MM_PER_INCH: Final = 25.4
CSS_DPI: Final = 96  # pixels of a browser in an inch
LEAST_MM, MOST_MM = 30, 1000
MOST_DPI: Final = 1200

OF_MAPS: Final = ("overview", "head")  # the parts of Attention that need weights and labels alone
FRAME_PIXELS: Final = 720
IMAGE_MM: Final = 200
IMAGE_DPI: Final = 96
MOST_ROWS: Final = 60  # of the plain table of steps


def pictures_named(name: str) -> list[Picture[Any]]:
    """The pictures of a name: of a page or a part, or one, with or without its page's name; a QueryError if unknown."""
    page, _, rest = name.partition(".")
    if name in PICTURES:
        return [PICTURES[name]]
    if page in PAGES:
        parts = PAGES[page].parts
        if not rest:
            return [one for part in parts.values() for one in part.pictures.values() if one.follows != "server"]
        if rest in parts and parts[rest].pictures:
            return list(parts[rest].pictures.values())
        if (found := PICTURES.get(rest)) is not None and found.part.page.path == page:
            return [found]
    known = [f"{one.part.page.path}.{key}" for key, one in PICTURES.items()]
    near = get_close_matches(name, known, n=3, cutoff=0.4) or known
    raise _unknown("name", name, near)


def _unknown(what: str, found: str, known: Iterable[str]) -> QueryError:
    return QueryError(
        "{what}: there is no {found}; choose from {known}.", what=what, found=shown(found), known=", ".join(known)
    )


def looked_at(view: Mapping[str, object]) -> View:
    """The view, by names of its fields. Raises QueryError for an unknown one."""
    known = list(all_fields())
    for name, value in view.items():
        if name not in known:
            raise _unknown("view", name, get_close_matches(name, known, n=3, cutoff=0.4) or known)
        try:
            one = View().but(**{name: value})
            found, _ = read_link({key: (text,) for key, text in write_link(Link(view=one)).items()})
        except (TypeError, ValueError, AttributeError):
            found = Link()
        if found.view.get(name) != value:
            raise QueryError("{name} cannot be {value}.", name=name, value=shown(value))
    return View().but(**view)


def link_of(trace: Trace, view: View) -> Link:
    """A run's query parameters in the app."""
    query = trace.query
    return Link(
        model=trace.checkpoint, source=query.source, max_new=query.max_new, decoding=query.decoding,
        forced=query.forced, hypothesis=query.hypothesis, interventions=query.interventions, view=view,
    )  # fmt: skip


def run_of(
    trace: Trace, checkpoint: Checkpoint, link: Link, picture: Picture[Any]
) -> tuple[ViewedRun, tuple[str, ...]]:
    """The run with that picture's view, with a note for each selected thing that does not exist."""
    return seen(checkpoint, link, trace, kind=picture.part.page.kind(link.view))


def plot_of(picture: Picture[Any], run: ViewedRun) -> Plot:
    """What a picture shows. Raises QueryError where the model has nothing to show."""
    plot = picture.of(run)
    if plot is None:
        raise QueryError("{picture} has nothing to show for {model}.", picture=picture.key, model=run.checkpoint.name)
    return plot


@dataclass(frozen=True)
class InNotebook:
    """What a notebook draws of one run or of two."""

    runs: Sequence[SavedRunContent]

    def _repr_html_(self) -> str:
        title = escape(" | ".join(repr(shown.run.trace) for shown in self.runs))
        return _framed(title, file_of(*self.runs), "".join(map(_plain, self.runs)))


def _framed(title: str, page: str, plain: str) -> str:
    """A page in a frame, and what is seen of it without scripts."""
    # Without `sandbox`: it makes itself as tall as its content, and with its origin a sandbox would hold nothing.
    frame = (
        f'<iframe title="{title}" srcdoc="{escape(page)}" style="width:100%;height:{FRAME_PIXELS}px;border:0"></iframe>'
    )
    summary = escape(said(say("Without scripts"), ENGLISH))
    return f"<div>{frame}<details open><summary>{summary}</summary>{plain}</details></div>"


@dataclass(frozen=True)
class MapsInNotebook:
    """What a notebook draws of maps without a model."""

    maps: LabelledMaps
    plots: Sequence[Plot]

    def _repr_html_(self) -> str:
        parts = []
        for plot in self.plots:
            alt = escape(said(plot.alt, ENGLISH), quote=True)
            drawn = chart_element(figure_of(plot.spec, ENGLISH), bar=True)
            parts.append(f'<div role="img" aria-label="{alt}">{drawn}</div>')
        page = f'<body style="font-family:sans-serif;margin:0">{"".join(parts)}{embedded()}</body>'
        alts = "".join(f"<p>{escape(said(plot.alt, ENGLISH))}</p>" for plot in self.plots)
        return _framed(escape(said(say("Attention maps"), ENGLISH)), page, alts)


def show(trace: Trace | LabelledMaps, name: str, view: Mapping[str, object]) -> InNotebook | MapsInNotebook:
    """One run, or maps, for the last line of a cell; see `Trace.show`."""
    return (
        MapsInNotebook(trace, _plots(trace, name, view))
        if isinstance(trace, LabelledMaps)
        else InNotebook([_shown(trace, name, view)])
    )


def _plots(maps: LabelledMaps, name: str, view: Mapping[str, object]) -> list[Plot]:
    """What pictures show of maps. Raises QueryError for one that needs a model."""
    pictures = pictures_named(name)
    if any(picture.part.page.path != "attention" or picture.part.name not in OF_MAPS for picture in pictures):
        known = [f"attention.{part}" for part in OF_MAPS]
        raise _unknown("name", name, known)
    fitted, notes = fit_given(looked_at(view), maps)
    for note in notes:
        warn(str(note), stacklevel=5)
    shown = Viewed(VisibleMaps(maps, fitted, MAIN), None)
    made = (picture.of(shown) for picture in pictures)  # type: ignore[arg-type]  # of maps nothing steps
    return [plot for plot in made if plot is not None]


def compare(left: Trace, right: Trace, name: str, view: Mapping[str, object]) -> InNotebook:
    """Two runs beside each other; see `transformer.compare`."""
    return InNotebook([_shown(left, name, view), _shown(right, name, view)])


def _shown(trace: Trace, name: str, view: Mapping[str, object]) -> SavedRunContent:
    pictures, link = pictures_named(name), link_of(trace, looked_at(view))
    checkpoint = in_memory(trace.query.checkpoint) or recorded_of(trace)
    run, notes = run_of(trace, checkpoint, link, pictures[0])
    for note in notes:
        warn(str(note), stacklevel=5)
    if len(pictures) == 1:
        plot_of(pictures[0], run)
    return _with_stepper(run, pictures)


def _with_stepper(run: ViewedRun, pictures: Sequence[Picture[Any]]) -> SavedRunContent:
    page = pictures[0].part.page
    return SavedRunContent(run, stepper_run(run.visible, run.checkpoint, run.trace.query.to_json()), page, pictures)


def picture_file(
    folder: Path,
    source: str,
    parameters: Mapping[str, Sequence[str]],
    name: str,
    *,
    form: Format | Literal["html", "dot", "tex"],
    language: str,
    width: float,
    height: float | None,
    dpi: float,
    device: str = "cpu",
) -> tuple[bytes, tuple[str, ...]]:
    """The content of a file with a picture of a run, and a note for each selected thing that does not exist.

    `folder` is a checkpoint's; `parameters` are other query parameters of the app, for the run and the view; `name` is
    as of `pictures_named`: of several the first is drawn, in HTML, which is a saved run, all. `language` is for PNG,
    PDF and SVG; `width`, `height` and `dpi` are as of `images`. A GlassformerError if the folder, the query, a name or
    a size is invalid, or the picture cannot be drawn in that form.
    """
    if language not in languages():
        raise _unknown("language", language, languages())
    pictures = pictures_named(name)
    words = address_words()
    for word in parameters:
        if word not in words:
            raise _unknown("parameters", word, get_close_matches(word, words, n=3) or words)
    link, notes = read_link({**parameters, "src": (source,)})
    checkpoint = load(folder, device=device)
    trace = checkpoint.run(link.query(checkpoint.content_hash))
    run, more = run_of(trace, checkpoint, link, pictures[0])
    if form == "html":
        return file_of(_with_stepper(run, pictures)).encode(), (*notes, *more)
    plot = plot_of(pictures[0], run)
    if form == "dot" or form == "tex":
        return WRITERS[form](pictures[0], run, plot).encode(), (*notes, *more)
    [content] = images([plot.spec], language, form=form, width=width, height=height, dpi=dpi)
    return content, (*notes, *more)


def _plain(shown: SavedRunContent) -> str:
    """A run as text: a table of its steps, and its pictures at the selected step."""
    run, trace = shown.run, shown.run.trace
    source, output = escape(trace.query.source), escape(trace.output_text)
    parts = [f"<p>{escape(run.checkpoint.name)}: {source} → {output}</p>"]
    if trace.n_steps:
        steps = trace.to_frame()[["step", "reads", "predicts", "probability", "rank", "entropy_bits", "text"]]
        steps["step"] += 1  # as the pictures count
        parts.append(steps.to_html(index=False, border=0, max_rows=MOST_ROWS, float_format="{:.4g}".format))
    found = [(picture, plot) for picture in shown.pictures or () if (plot := picture.of(run)) is not None]
    for (picture, plot), drawn in zip(found, _images([plot for _, plot in found]), strict=True):
        alt = escape(said(plot.alt, ENGLISH), quote=True)
        parts.append(f"<h4>{escape(said(picture.title, ENGLISH))}</h4>")
        parts.append(f'<img alt="{alt}" src="data:image/png;base64,{drawn}">' if drawn else f"<p>{alt}</p>")
        parts.append(f"<p>{escape(said(plot.caption, ENGLISH))}</p>")
    return "".join(parts)


def _images(plots: Sequence[Plot]) -> list[str]:
    """Each as PNG in base64; empty without kaleido or a browser."""
    if find_spec("kaleido") is None or not plots:
        return [""] * len(plots)
    try:
        drawn = images([plot.spec for plot in plots], ENGLISH, form="png", width=IMAGE_MM, dpi=IMAGE_DPI)
    except GlassformerError:
        return [""] * len(plots)
    return [base64.b64encode(one).decode("ascii") for one in drawn]


def figure_of(spec: Spec, language: str) -> go.Figure:
    """What `..._spec` of `charts` returned as a figure that needs none of the app's scripts."""
    return figure_in(unpacked(spec), language)


def images(
    specs: Sequence[Spec], language: str, *, form: Format, width: float, height: float | None = None, dpi: float = 300
) -> list[bytes]:
    """Draw what `..._spec` of `charts` returned, as PNG, or as SVG or PDF with text as text.

    Width and height are in millimetres, without a height the default of each picture; `dpi` is for PNG. A
    GlassformerError if a size is out of range, kaleido or a browser is missing, or the browser fails.
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
    figures = [figure_of(spec, language).update_layout(paper_bgcolor="white") for spec in specs]
    try:
        from kaleido import Kaleido
    except ModuleNotFoundError as error:
        raise GlassformerError(
            "PNG, SVG and PDF files need {name}; install it with `pip install 'glassformer[pictures]'`. Other files "
            "need nothing extra.",
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
