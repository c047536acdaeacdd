"""Part "Speed-ups": tiled attention, paged KV cache, torch.compile and int8 timings."""

from dataclasses import replace
from functools import partial
from typing import Any, Final

from glassformer.inside import inside_controls
from glassformer.inside import speedups_pictures as pictures
from glassformer.inside.speedups_pictures import Fast, layer_of, n_heads, open_fast, side_of
from glassformer.inside.token_selection import pieces_of
from glassformer.runs.error_boundary import attempt
from glassformer.runs.map_axes import KIND_NAMES
from glassformer.runs.measurement_jobs import measured
from glassformer.runs.open_run import OpenRun
from glassformer.runs.show import show_beside
from glassformer.shared import controls, drawing
from glassformer.shared.i18n import st, table
from transformer.analysis import speed_gains
from transformer.analysis.speed_gains import Gains
from transformer.analysis.tiled_attention import kept_bytes, score_bytes, token_bytes
from transformer.i18n import joined, say
from transformer.model.anatomy import anatomy
from transformer.model.config import ModelConfig

GAINS: Final = "fast_gains"
SIZES: Final = (1, 2, 4, 8, 16, 32, 64, 128)
LONG: Final = 16_384  # tokens of a text whose maps nobody wants in memory


def draw(run: OpenRun, row: Any) -> None:
    """Draw it, with its controls in `row`."""
    with row:
        _choose_row(run)
    o = attempt(lambda: open_fast(run))
    if o is not None:
        _tiles(o)
        _cache(o)
    _gains(run)


def _choose_row(run: OpenRun) -> None:
    parts, slot = anatomy(run.checkpoint.config), run.slot
    kinds = {kind: KIND_NAMES[kind] for kind in parts.kinds}
    controls.menu(controls.field(slot, "kind"), say("Attention"), kinds, bare=True, width=200)
    layer = replace(controls.field(slot, "layer", key="fast_layer"), value=layer_of(run))
    controls.menu_of_layers(layer, parts.attention(run.view.kind).n_layers, all_together=False)
    head = replace(controls.field(slot, "head", key="fast_head"), value=min(run.view.head or 0, n_heads(run) - 1))
    controls.menu_of_heads(head, n_heads(run), all_together=False)
    side = side_of(run)
    inside_controls.choose_token(run, side, pieces_of(run, side), key="fast_token", width=180)


def _tiles(o: Fast) -> None:
    st.subheader(say("Softmax, tile by tile"))
    said = say(
        "A softmax seems to need all scores of a row at once. FlashAttention reads them one tile at a time and "
        "keeps three things: the largest score so far m, the sum l of exp(score − m), and the sum o of "
        "exp(score − m) · value. (Milakov & Gimelshein 2018; Dao et al. 2022)"
    )
    n = len(o.axes.keys)
    with st.container(horizontal=True, gap="large", vertical_alignment="center"):
        _choose_size(o, "tile_keys", say("Keys in a tile"), n)
        if len(o.tiles) > 1:
            controls.slider(controls.field(o.slot, "tile"), say("Tile"), 1, len(o.tiles))
    show_beside(pictures.scores, pictures.output, o)
    drawing.explain(said, drawing.plain(never_written(o.run.checkpoint.config)))


def _choose_size(o: Fast, name: str, label: str, most: int) -> None:
    """Draw the choice of a size; one that an address names is among the options."""
    chosen: int = o.run.view.get(name)
    sizes = sorted({*(size for size in SIZES if size <= max(most, SIZES[2])), chosen})
    controls.choose(controls.field(o.slot, name), label, {size: f"{size:,}" for size in sizes})


def never_written(config: ModelConfig) -> str:
    """How many bytes of scores and weights tiles never write to memory."""
    heads = [one.n_layers * config.of(one.stack).n_heads for one in anatomy(config).attentions]
    said = say(
        "For a text of n tokens, this model has {heads} heads in all its layers, and so {heads} · n² scores and as "
        "many weights of 4 bytes each. With tiles they are never written to memory, only m and l of each query.",
        heads=sum(heads),
    )
    lengths = [
        say("At {n:,} tokens: {saved} not written, {kept} kept.", n=n, saved=in_bytes(2 * score_bytes(config, n)),
            kept=in_bytes(kept_bytes(config, n)))
        for n in sorted({config.max_len, LONG})
    ]  # fmt: skip
    return joined(" ", [said, *lengths])


def in_bytes(n: int) -> str:
    """A number of bytes, short."""
    if n >= 10**9:
        return say("{n:,.1f} GB", n=n / 10**9)
    return say("{n:,.1f} MB", n=n / 10**6) if n >= 10**6 else say("{n:,.1f} kB", n=n / 10**3)


def _cache(o: Fast) -> None:
    st.subheader(say("Pages of the KV cache"))
    if not o.run.trace.n_steps:
        st.caption(say("This encoder-only model reads its text in one pass, so it keeps no KV cache."))
        return
    said = say(
        "Each step keeps its keys and values for later steps. How long the output will be is not known in "
        "advance, so PagedAttention takes small blocks as the text grows, instead of room for the longest text. "
        "(Kwon et al. 2023)"
    )
    _choose_size(o, "block", say("Tokens in a block"), SIZES[-1])
    show_beside(pictures.blocks, pictures.places, o)
    config, more = o.run.checkpoint.config, ""
    if anatomy(config).reads:
        cross = len(o.run.trace.src_ids) * token_bytes(config)
        more = say("The keys and values of the source are computed once and take {n:,} bytes more.", n=cross)
    drawing.explain(said, more)


def _gains(run: OpenRun) -> None:
    config = run.checkpoint.config
    if not anatomy(config).writes:
        return
    st.subheader(say("torch.compile and int8 on this machine"))
    said = say(
        "torch.compile turns the model's Python into C++ for this processor; int8 rounds large matrices to 8 "
        "bits, a quarter of the bytes. One decoding step with this model's sizes is measured on one thread. The "
        "app's own drafts use int8, too."
    )
    drawing.explain(said)
    if config.count_parameters() > speed_gains.MOST_PARAMETERS:
        st.caption(say("This model is too large to be measured here."))
        return
    key = "gains", config.to_json()
    found = measured(
        key, partial(speed_gains.measuring, config), seconds=speed_gains.SECONDS, wish=key, widget=run.key(GAINS),
        label=say("Measure it on this machine"), needs_model=False,
    )  # fmt: skip
    if found is not None:
        _found(found, run.key(f"{GAINS}_table"))


def _found(found: Gains, key: str) -> None:
    ways = (
        (say("the model's own step"), found.eager),
        (say("the same without torch's modules"), found.lean),
        (say("and large matrices in int8"), found.int8),
        ("torch.compile", found.compiled),
    )
    rows = [[name, round(time, 3), round(found.eager / time, 2)] for name, time in ways if time is not None]
    names = [say("One step"), say("Processor time for a token (ms)"), say("Times as fast")]
    columns, alt = dict(zip(names, zip(*rows, strict=True), strict=True)), say("Time for a token in each way.")
    st.container(key=key).dataframe(table(columns), hide_index=True, width="content", alt=alt)
    st.caption(drawing.plain(what_compiling_costs(found)))


def what_compiling_costs(found: Gains) -> str:
    """How long compiling took, and when it has paid."""
    if found.problem == speed_gains.NO_COMPILER:
        return say("torch.compile needs a C++ compiler such as g++, and this machine has none.")
    if found.problem == speed_gains.NO_ONE_SHAPE:
        return say("torch.compile is not measured here: this model's position bias or window grows with every step.")
    if found.problem:
        return say("torch.compile could not compile this model: {problem}", problem=found.problem)
    if found.pays_after is None:
        return say("Compiling took {seconds:.0f} s and saved nothing here.", seconds=found.compile_seconds)
    return say(
        "Compiling took {seconds:.0f} s, which pays off after about {n:,} tokens. Every process compiles anew.",
        seconds=found.compile_seconds,
        n=int(float(f"{found.pays_after:.2g}")),
    )
