"""The Inside page: its row of parts, the choice of a token, and the parts that follow one through the layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from glassformer.frame.sentence_stepper import Still, one_token, sentence
from glassformer.inside import InsideLook, ffn_pictures, lens_pictures, stream_pictures
from glassformer.inside.ffn_pictures import OpenLayer, layer_of, open_layer
from glassformer.inside.lens_pictures import COLOUR_NAMES, DEPTH_NAMES, depths_of, open_lens
from glassformer.inside.stream_pictures import OpenStream, norm_name, open_stream
from glassformer.inside.token_selection import INSIDE, chosen_row, pieces_of, sides_of, token_of, writes
from glassformer.runs.error_boundary import attempt
from glassformer.runs.map_axes import SIDES, STACK_NAMES, STACKS
from glassformer.runs.open_run import OpenRun
from glassformer.runs.show import ask_first, choose_part, show, show_beside
from glassformer.shared import controls, cover_box, drawing
from glassformer.shared.i18n import st
from glassformer.state import session
from glassformer.state.view import Side, Slot
from transformer.analysis.logit_lens import Paths, paths
from transformer.analysis.stream import Normed
from transformer.i18n import joined, paragraph, say
from transformer.i18n.sentence import digits
from transformer.model.anatomy import anatomy

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint


def draw(run: OpenRun) -> None:
    """Draw the sentence and the chosen part, which adds its own controls to the row of parts."""
    sentence(run, compact=True, still=still(run))
    row = controls.bar(run.slot)
    with row:
        choose_part(INSIDE, run.slot)
    cover_box.part(lambda: INSIDE.entry(run).draw(run, row))


def still(run: OpenRun) -> Still | None:
    """What a part looks at in which nothing moves with the step: the model as such, and the source."""
    entry, sides = INSIDE.entry(run), sides_of(run.checkpoint.config)
    if entry.still:
        return Still()
    if entry.name == "fast" and run.trace.n_steps:  # the cache grows with the step
        return None
    on_source = "target" not in sides or run.view.side == "source"
    return one_token(run, run.view.key or 0) if on_source and entry.name != "lens" else None


def choose_side(run: OpenRun, kept: controls.ControlBinding | None = None) -> Side:
    """Draw the choice of a side that the model has; by default bound to the view's `side`."""
    kept = kept or controls.field(run.slot, "side")
    return controls.choose(kept, say("Side"), {side: SIDES[side] for side in sides_of(run.checkpoint.config)},
                          bare=True)  # fmt: skip


def choose_token(run: OpenRun, side: Side, pieces: list[str], *, key: str, width: int) -> None:
    """Draw the choice of a token; of the output it goes with the step, but for rows of a prompt."""
    if side == "source":
        kept = controls.ControlBinding(run.key(key), token_of(run, side, pieces), taking(run, side))
        controls.menu(kept, say("Token"), controls.labelled(pieces), bare=True, width=width)
        return
    row = chosen_row(run)
    kept = controls.ControlBinding(run.key(key), row if row < run.trace.first_row else None, taking(run, side))
    controls.menu(kept, say("Token (its step)"), of_the_step(controls.labelled(pieces)), bare=True, width=width)


def of_the_step(pieces: Mapping[int, str]) -> dict[int | None, str]:
    """Options for tokens of the output; the first goes with the step, which the browser may have moved on."""
    return {None: say("The step's token"), **dict(pieces.items())}


def taking(run: OpenRun, side: Side) -> Callable[[object], None]:
    """Callback with a token, to look at it; it holds no run."""
    return partial(_take, run.slot, side, run.trace.first_row)


def _take(slot: Slot, side: Side, first_row: int, token: object) -> None:
    """Look at a token; one of the output belongs to a step, so the step follows."""
    if side == "source" and isinstance(token, int):
        session.replace(slot, key=token)
    elif token is None or (isinstance(token, int) and token < first_row):
        session.replace(slot, query=token)
    elif isinstance(token, int):
        session.replace(slot, query=None)
        session.move_to(slot, token - first_row)


def stream(run: OpenRun, row: Any) -> None:
    """Draw it, with its controls in `row`."""
    with row:
        side = choose_side(run)
        choose_token(run, side, pieces_of(run, side), key="stream_token", width=220)
    o = attempt(lambda: open_stream(run))
    if o is None:
        return
    take = taking(run, side)
    show_beside(stream_pictures.size, stream_pictures.kept, o, take=take)
    if not cover_box.covered(stream_pictures.kept.key):  # it says the cosine
        drawing.explain(drawing.plain(what_happens(o)))
    show(stream_pictures.added, o)
    config = run.checkpoint.config
    if not o.norms:
        st.caption(say("This model has no norms."))
        return
    names = {place: norm_name(one, pre=o.pre) for place, one in enumerate(o.norms)}
    if config.norm == "both" or config.embedding_norm:
        st.caption(say("This list leaves out norms on sub-layer outputs and any norm after the embedding."))
    controls.menu(controls.field(run.slot, "norm"), say("Norm"), names, width=340)
    show(stream_pictures.norm, o, take=take)
    show(stream_pictures.strip, o)
    drawing.explain(drawing.plain(what_a_norm_does(o.normed)))


@paragraph
def what_happens(o: OpenStream) -> Iterator[str]:
    """What this model's norms do to the size of the stream, with this sentence's numbers."""
    config, measured = o.run.checkpoint.config, o.measured
    n_sublayers = len(measured.sublayers)
    first, last = (float(measured.size[place].mean()) for place in (0, n_sublayers))
    kept = float(measured.kept[n_sublayers].mean())
    if config.norm == "both":
        yield say(
            "In this model, sub-layers read a normalised copy of the stream, and what they add to it is "
            "normalised, too. Averaged over these tokens, the stream's root mean square goes from {first:.2f} "
            "to {last:.2f}.",
            first=first,
            last=last,
        )
    elif config.norm == "pre":
        yield say(
            "This model is pre-norm: sub-layers read a normalised copy of the stream and add their output to "
            "the stream itself. Averaged over these tokens, the stream's root mean square goes from "
            "{first:.2f} to {last:.2f}.",
            first=first,
            last=last,
        )
    else:
        yield say(
            "This model is post-norm: a norm follows every sum, so the stream is rescaled each time. Averaged "
            "over these tokens, the stream's root mean square goes from {first:.2f} to {last:.2f}.",
            first=first,
            last=last,
        )
    if config.norm != "post" and config.final_norm:
        yield say("The final norm brings the root mean square to {size:.2f}.", size=float(measured.size[-1].mean()))
    yield say(
        "After the last layer, the cosine between the stream and its starting vector is {kept:.2f} on average.",
        kept=kept,
    )


@paragraph
def what_a_norm_does(found: Normed) -> Iterator[str]:
    """The range of the numbers before and after, and whether the formula gives what the model has."""
    yield say(
        "Each token's vector has {n} numbers. Their standard deviation is {before} before the norm and {after} "
        "after it, depending on the token. The norm's γ is {gamma}, depending on the dimension.",
        n=found.before.shape[1],
        before=_range(found.deviation_before),
        after=_range(found.deviation_after),
        gamma=_range(found.gamma),
    )
    yield say("The formula reproduces the model's numbers to within {difference}.", difference=digits(found.difference))


def _range(values: np.ndarray) -> str:
    return say("{least:.2f} to {most:.2f}", least=float(values.min()), most=float(values.max()))


def lens(run: OpenRun, row: Any) -> None:
    """Draw the lens of the current step, and of all steps that may be seen."""
    if not anatomy(run.checkpoint.config).writes:
        st.info(_no_lens(run))
        return
    o = attempt(lambda: open_lens(run))
    if o is None:
        return
    with row:
        controls.choose(controls.field(run.slot, "depths"), say("Read after"), DEPTH_NAMES, bare=True)
    if run.visible.covered:
        ask_first(run, say("The logit lens of this step would give the answer away."), key="lens_reveal")
    else:
        show_beside(lens_pictures.table, lens_pictures.curves, o, widths=(3, 2))
    if not o.n_steps:
        drawing.explain(drawing.plain(what_it_is(run.checkpoint)))
        return
    controls.choose(controls.field(run.slot, "lens_colour"), say("Colour"), COLOUR_NAMES)
    show(lens_pictures.lens_map, o, take=partial(session.move_to, run.slot))
    depths, found = depths_of(o.lens), paths(o.lens.rank)
    said = [what_it_is(run.checkpoint), _summary(found, [depth.name for depth in depths], o.n_steps)]
    ends = np.flatnonzero(found.stays[: o.n_steps] == len(depths) - 1)
    if len(ends) == o.n_steps > 1:
        said.append(say("At every step, the final choice is made only at the last depth."))
    drawing.explain(*map(drawing.plain, said))


def _no_lens(run: OpenRun) -> str:
    if anatomy(run.checkpoint.config).fills:
        return say(
            "This encoder-only model generates no output. Its MLM head predicts masked tokens, but the lens does "
            "not use that head."
        )
    return say("This encoder-only model has no output layer that could read the stream, so it has no logit lens.")


@paragraph
def what_it_is(checkpoint: Checkpoint) -> Iterator[str]:
    """What the lens does with this model, and how far it can be trusted."""
    config = checkpoint.config
    how = say(
        "The decoder's stream at every depth is read as if it came from the last layer. It goes straight to the "
        "output layer, because this model has no final norm."
    )
    if config.final_norm:
        how = say(
            "The decoder's stream at every depth is read as if it came from the last layer. It goes through the "
            "final norm and the output layer."
        )
    elif config.norm == "post":
        how = say(
            "The decoder's stream at every depth is read as if it came from the last layer. It goes straight to "
            "the output layer, because a post-norm stream is already normalised."
        )
    yield how
    yield say(
        "The output layer and any norm before it were trained only on the last layer, so an earlier depth may "
        "contain more information than the lens shows."
    )
    if config.tie_output:
        yield say(
            "The output layer uses the embedding table, so the first depths tend to echo the token that was just read."
        )


def _summary(found: Paths, names: list[str], n_steps: int) -> str:
    """How many steps each depth decided."""
    stays = found.stays[:n_steps]
    decided = [(int((stays == depth).sum()), name) for depth, name in enumerate(names)]
    said = [say("{count} after {depth}", count=count, depth=name) for count, name in decided if count]
    never = int((stays < 0).sum())
    said += [say("{count} never", count=never)] if never else []
    counts = joined(", ", said)
    return say(
        "Depth from which each step's token stays the top candidate, for these {n} steps: {counts}.",
        n=n_steps,
        counts=counts,
    )


LAYER: Final = "ffn_layer"
TOKEN: Final = "ffn_token"
NEURON: Final = "ffn_neuron"
REVEAL: Final = "ffn_reveal"

# A neuron of another layer has nothing but its number in common.
_FORGETS: Final = ("neuron",)


def feed_forward(run: OpenRun, row: Any) -> None:
    """Draw it, with its controls in `row`."""
    with row:
        side = choose_side(run, controls.field(run.slot, "side", forgets=_FORGETS))
        _choose_layer(run, side)
        choose_token(run, side, pieces_of(run, side), key=TOKEN, width=180)
        d_ff = run.checkpoint.config.of(STACKS[side]).d_ff
        _choose_neuron(run.slot, d_ff)
    o = attempt(lambda: open_layer(run))
    if o is None:
        return
    if (asked := run.view.of(InsideLook).neuron) is not None and asked >= d_ff:
        drawing.notes(
            [say("There is no neuron {neuron}: this layer has only {n:,} neurons.", neuron=asked + 1, n=d_ff)]
        )
    take = taking(run, side)
    drawing.beside(
        partial(show, ffn_pictures.shares, o, take=partial(_take_layer, run.slot, take)),
        partial(show, ffn_pictures.histogram, o),
    )
    drawing.explain(drawing.plain(what_it_does(o)))
    look_at = partial(_take_neuron, run.slot)
    drawing.beside(
        partial(show, ffn_pictures.active, o, take=look_at), partial(show, ffn_pictures.by_token, o, take=take)
    )
    _neuron(run, o)
    show(ffn_pictures.neuron_map, o, take=lambda cell: (look_at(cell[1]), take(cell[0])))


def _choose_layer(run: OpenRun, side: Side) -> None:
    count = anatomy(run.checkpoint.config).stack(STACKS[side]).n_layers
    kept = controls.field(run.slot, "layer", key=LAYER, forgets=_FORGETS)
    controls.menu_of_layers(replace(kept, value=layer_of(run, side)), count, all_together=False)


def _choose_neuron(slot: Slot, d_ff: int) -> None:
    controls.number(
        controls.field(slot, "neuron", key=NEURON),
        say("Neuron (1 to {most:,})", most=d_ff),
        d_ff,
        placeholder=say("Most active neuron"),
        bare=True,
        help=say("Leave this empty to use the token's most active neuron."),
        width=210,
    )


def _take_layer(slot: Slot, take_token: Callable[[object], None], cell: tuple[int, int]) -> None:
    controls.put(slot, "layer", _FORGETS, cell[0])
    take_token(cell[1])


def _take_neuron(slot: Slot, neuron: int) -> None:
    session.replace(slot, neuron=neuron)


# ------------------------------------------------------------------------------------------------ in words


@paragraph
def what_it_does(o: OpenLayer) -> Iterator[str]:
    """The widths of the sub-layer, and what it computes."""
    config = o.run.checkpoint.config.of(o.stack)
    yield say(
        "Layer {layer} of the {stack} widens each token's {d_model:,} numbers to {d_ff:,} neurons (d_ff = "
        "{ratio:g} × d_model), applies {function} and narrows them again, separately for each token.",
        layer=o.layer + 1,
        stack=STACK_NAMES[o.stack],
        d_model=config.d_model,
        d_ff=config.d_ff,
        ratio=config.d_ff / config.d_model,
        function=o.function,
    )
    if o.gated:
        yield say(
            "A gate decides how much passes: each activation is {function} of the gate's value, times the "
            "output of a second linear map.",
            function=o.function,
        )


def _neuron(run: OpenRun, o: OpenLayer) -> None:
    """Draw what the selected neuron writes, and in the decoder which pieces it raises and lowers."""
    if anatomy(run.checkpoint.config).fills:
        st.caption(say("This page does not show how a neuron changes the logits of the MLM head."))
    elif not anatomy(run.checkpoint.config).writes:
        st.caption(say("This encoder-only model generates no output, so it has no logits that a neuron could change."))
    elif not writes(run, o.stack):
        said = say(
            "An encoder neuron writes into the memory, not directly to the logits. Its effect on the logits "
            "depends on the decoder."
        )
        drawing.explain(said)
    elif run.visible.covered:
        ask_first(run, say("The tokens whose logits this neuron raises could give the answer away."), key=REVEAL)
    elif attempt(lambda: o.effect) is not None:
        show(ffn_pictures.effect, o)
        if run.checkpoint.config.logit_cap:
            st.caption(say("These are the logits before the soft cap is applied."))
