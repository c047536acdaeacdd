"""Pictures of the loaded model: diagram, parameters and multiply-adds by component, multiply-adds by length."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Final

from glassformer.charts import theme
from glassformer.charts.diagram import Stack, model_diagram_spec, with_links
from glassformer.charts.grammar import at_a_line, stroke, upright
from glassformer.charts.histograms import cost_shares_spec
from glassformer.charts.marks import LOGARITHMIC, Places, Scale, Series, lines
from glassformer.charts.theme import Spec, literal
from glassformer.inside import InsideLook
from glassformer.inside.model.blocks import (
    Grouping,
    SizedBlock,
    blocks_of,
    contents,
    each_layer,
    few_layers,
    one_layer,
    sized,
    stacks,
)
from glassformer.inside.token_selection import INSIDE, pieces_of, sides_of
from glassformer.runs.map_axes import has_one_stack
from glassformer.runs.picture import Plot
from glassformer.runs.viewed_run import RunScene
from glassformer.state.view import Click
from transformer.analysis import costs
from transformer.analysis.costs import Holding, Part
from transformer.i18n import say, say_n
from transformer.model.anatomy import Anatomy, anatomy
from transformer.model.config import ModelConfig

FURTHEST: Final = 4096  # tokens up to which lengths are counted, whatever the model reads
KEPT: Final = 32  # diagrams: a class that follows its teacher draws the same one a hundred times
_STEPS: Final = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072,
                 4096, 8192, 16_384, 32_768)  # fmt: skip
_GROUPS: Final[Mapping[str, str]] = {
    "projections": say("Attention projections"),
    "ffn": say("Feed-forward"),
    "output": say("Output layer"),
}
MAPS_LINE = say("n² part: q·k and weights·v")
LINEAR_LINE = say("All linear parts")
HOW_TO_READ_CURVES = say(
    "Both axes are logarithmic, so the linear part (a·n) rises with slope 1 and the n² part (b·n²) with slope 2. "
    "The two lines meet at n = a/b; for longer texts, the n² part is more than half of all multiply-adds."
)
_PROJECTIONS = say("Compute queries, keys and values (q_proj, k_proj, v_proj) and join the heads (out_proj)")
_MAPS = say("q·k for the scores, weights·v for the weighted sums")
_FFN = say("Widen each token's vector to d_ff, then narrow it again")
_COMPONENTS: Final[Mapping[Part, tuple[str, str]]] = {
    "source_embedding": (say("Source embedding"), say("A vector for each source token: looked up, not multiplied")),
    "target_embedding": (say("Target embedding"), say("A vector for each target token: looked up, not multiplied")),
    "positions": (say("Positions"), say("A vector for each position: added, not multiplied")),
    "encoder_projections": (say("Encoder self: projections"), _PROJECTIONS),
    "encoder_maps": (say("Encoder self: n² part"), _MAPS),
    "encoder_ffn": (say("Encoder feed-forward"), _FFN),
    "decoder_projections": (say("Decoder self: projections"), _PROJECTIONS),
    "decoder_maps": (say("Decoder self: n² part"), _MAPS),
    "cross_projections": (
        say("Cross: projections"),
        say(
            "Compute queries, keys and values (q_proj, k_proj, v_proj) and join the heads (out_proj): queries from "
            "the target, keys and values from the source"
        ),
    ),
    "cross_maps": (say("Cross: n² part"), _MAPS),
    "decoder_ffn": (say("Decoder feed-forward"), _FFN),
    "norms": (
        say("Norms"),
        say("Bring every token's vector to the same size, inside the layers and after the last one"),
    ),
    "output": (say("Output layer"), say("A score for every target token")),
}


@dataclass(frozen=True)
class OpenModel(RunScene):
    """The loaded model, the lengths of the sentence, and a length that its costs are counted for."""

    links: Mapping[str, str] = field(default_factory=dict)  # from blocks to other pages: they are a session's own

    @property
    def config(self) -> ModelConfig:
        """The features of the model."""
        return self.run.checkpoint.config

    @cached_property
    def one(self) -> SizedBlock:
        """What its blocks are made from."""
        model, run = self.run.checkpoint.model, self.run
        return sized(model, n_source=len(run.trace.src_ids), n_target=run.visible.n_rows)

    @property
    def blocks(self) -> dict[str, str]:
        """The names of all its blocks by their places."""
        return {block.place: block.name for stack in _stacks(self.one, each_layer) for block in blocks_of(stack)}

    @property
    def held(self) -> dict[Part, Holding]:
        """What each component holds."""
        return contents(self.run.checkpoint.model).held

    @property
    def now(self) -> dict[Part, int]:
        """Multiply-adds of the sentence."""
        return costs.multiply_adds(self.config, n_source=self.one.n_source, n_target=self.one.n_target)

    @cached_property
    def read(self) -> set[int]:
        """The lengths of the sentence's sides."""
        return {len(pieces_of(self.run, side)) for side in sides_of(self.config)}

    @property
    def n(self) -> int:
        """The length that is chosen; else that of the longer side."""
        asked, current = self.run.view.of(InsideLook).tokens, max(self.read)
        return asked if asked is not None and asked in lengths(self.config, current) else current

    @property
    def at_n(self) -> dict[Part, int]:
        """Multiply-adds at that length."""
        return costs.multiply_adds(self.config, n_source=self.n, n_target=self.n)


def lengths(config: ModelConfig, current: int) -> list[int]:
    """The lengths that can be chosen: round ones, the current one, the longest, and where the n² part overtakes."""
    special = {current, config.max_len, costs.overtakes(config).n}
    return sorted({n for n in (*_STEPS, *special) if n <= max(FURTHEST, config.max_len)})


def named(part: Part, config: ModelConfig) -> tuple[str, str]:
    """What a component is called, and what it does; a model of one stack has one table of embeddings."""
    if part == "source_embedding" and has_one_stack(config):
        return say("Embedding"), say("A vector for each token: looked up, not multiplied")
    return _COMPONENTS[part]


MODEL = INSIDE.part("model", OpenModel, asks=True)


@MODEL.picture("model_diagram", say("The loaded model"), follows="still")
def diagram(o: OpenModel) -> Plot:
    """The diagram of the model; a click means a block."""
    parts, name = anatomy(o.config), o.run.checkpoint.name
    figure = _figure(o.one, one_layer if o.run.view.of(InsideLook).fold else few_layers, name)
    spec, places = with_links(figure, o.links), frozenset(o.blocks)

    def clicked(click: Click) -> str | None:
        return click.customdata if click.customdata in places else None

    return Plot(spec=spec, alt=_in_a_sentence(name, parts), clicked=clicked)


@lru_cache(maxsize=KEPT)
def _stacks(one: SizedBlock, grouping: Grouping) -> tuple[Stack, ...]:
    return stacks(one, grouping=grouping)


@lru_cache(maxsize=KEPT)
def _figure(one: SizedBlock, grouping: Grouping, name: str) -> Spec:
    """The diagram without links."""
    return model_diagram_spec(*_stacks(one, grouping), title=say("The loaded model: {name}", name=name))


def _in_a_sentence(name: str, parts: Anatomy) -> str:
    """The diagram for people who cannot see it."""
    layers = {stack.name: stack.n_layers for stack in parts.stacks}
    if not parts.reads:
        return say_n("Diagram of the model {name}: a decoder with {n} layer and no encoder.",
                     "Diagram of the model {name}: a decoder with {n} layers and no encoder.", layers["decoder"],
                     name=name)  # fmt: skip
    if not parts.writes:
        return say_n("Diagram of the model {name}: an encoder with {n} layer and no decoder.",
                     "Diagram of the model {name}: an encoder with {n} layers and no decoder.", layers["encoder"],
                     name=name)  # fmt: skip
    return say(
        "Diagram of the model {name}: an encoder on the left (layers: {n_encoder}), a decoder on the right "
        "(layers: {n_decoder}). The encoder's output goes to every cross-attention sub-layer.",
        name=name, n_encoder=layers["encoder"], n_decoder=layers["decoder"],
    )  # fmt: skip


@MODEL.picture("cost_shares", say("Shares of components"), follows="still")
def shares(o: OpenModel) -> Plot:
    """Each component's share of parameters, and of multiply-adds at the chosen length."""
    held, done, n = o.held, o.at_n, o.n
    parts = [part for part in costs.PARTS if held[part].parameters or done[part]]
    spec = cost_shares_spec(
        [named(part, o.config)[0] for part in parts],
        [held[part].parameters for part in parts],
        [done[part] for part in parts],
        title=say("Shares of components at n = {n:,}", n=n),
    )
    alt = say("Each component's share of parameters and of multiply-adds at {n} tokens.", n=n)
    return Plot(spec=spec, alt=alt)


@MODEL.picture("cost_curves", say("Multiply-adds by length"), follows="still")
def curves(o: OpenModel) -> Plot:
    """Multiply-adds from one token to as many as a model reads, or `FURTHEST`."""
    config, last, crossing = o.config, max(FURTHEST, o.config.max_len), costs.overtakes(o.config)
    counted = sorted({round(2 ** (step / 4)) for step in range(61) if 2 ** (step / 4) < last} | {o.n, last})
    counts = [_at_length(config, one) for one in counted]
    linear = [sum(count.values()) - count["maps"] for count in counts]
    parts = [(name, [count[group] for count in counts]) for group, name in _GROUPS.items()]
    dashes = ("dash", "dot", "dashdot")  # so that lines are distinct in grey, too
    each = zip(parts, dashes, strict=True)
    series = [_line(name, line, theme.GUIDE_COLOR, 1.6, dash) for (name, line), dash in each if any(line)]
    series.append(_line(LINEAR_LINE, linear, theme.MARK_COLOR, 2, "solid"))
    series.append(_line(MAPS_LINE, [count["maps"] for count in counts], theme.NEUTRAL_COLOR, 3, "solid"))
    powers = [4**power for power in range(12) if 4**power <= last]
    ticks = {"tickmode": "array", "tickvals": powers, "ticktext": [f"{n:,}" for n in powers]}
    look = {"type": "log", "range": [0, math.log10(last)]} | ticks
    across = Places(say("Tokens, n (log)"), counted, "n = %{x:,}", look)
    scale = Scale(say("Multiply-adds (log)"), LOGARITHMIC)
    shapes, notes = marks_of_lengths(crossing.linear / crossing.quadratic, config.max_len, o.n, last)
    drawn = lines(curves.title, across, scale, series, height=500, top=168, shapes=shapes)
    drawn["spec"]["layout"]["annotations"] = notes
    alt = say(
        "Multiply-adds of the part that grows with n² and of the parts that grow with n, for 1 to {n:,} tokens.", n=last
    )
    return Plot(spec=drawn["spec"], alt=alt, how_to_read=HOW_TO_READ_CURVES)


def _line(name: str, counts: list[int], colour: str, width: float, dash: str) -> Series:
    return Series(name, counts, stroke(colour, width, dash), "lines", "%{y:,.0f}")


def marks_of_lengths(crossing: float, max_len: int, chosen: int, last: int) -> tuple[list[Spec], list[Spec]]:
    """The shaded part beyond what the model reads, the chosen length and the crossing; names at the bottom."""
    shapes: list[Spec] = []
    notes: list[tuple[float, float, str]] = []
    if max_len < last:
        beyond = {"type": "rect", "x0": max_len, "x1": last, "y0": 0, "y1": 1, "yref": "y domain", "layer": "below"}
        shapes.append(beyond | {"fillcolor": theme.MASK_COLOR, "line": {"width": 0}, "opacity": 0.6})
        notes.append((last, 0.0, say("beyond the model's limit of {length:,} tokens (theoretical)", length=max_len)))
    shapes.append(upright(chosen, theme.MARK_COLOR))
    notes.append((chosen, 0.075, f"n = {chosen:,}"))
    if crossing <= last:
        shapes.append(upright(crossing, theme.NEUTRAL_COLOR))
        notes.append((crossing, 0.15, say("n² overtakes")))
    look, middle = {"font": {"size": 12}, "yanchor": "bottom"}, math.sqrt(last)
    # Annotations on a logarithmic axis are at logarithms, shapes do not.
    return shapes, [at_a_line(math.log10(x), y, literal(text), left=x > middle) | look for x, y, text in notes]


@lru_cache(maxsize=1024)
def _at_length(config: ModelConfig, n: int) -> Mapping[str, int]:
    return costs.grouped(costs.multiply_adds(config, n_source=n, n_target=n))
