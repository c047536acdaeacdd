"""Pictures of the "Speed-ups" part: online softmax tile by tile, blocks of the KV cache and their empty places."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from glassformer.charts.one_weight import (
    BlockRow,
    cache_blocks_spec,
    cache_places_spec,
    tile_output_spec,
    tile_scores_spec,
)
from glassformer.inside import InsideLook
from glassformer.inside.token_selection import INSIDE, token_of
from glassformer.runs.map_axes import KIND_NAMES, SIDE_OF, MapAxes, sides
from glassformer.runs.picture import Captions, CaptionTable, Plot
from glassformer.runs.viewed_run import RunScene, ViewedRun
from glassformer.state.view import Side
from transformer.analysis import tiled_attention as tiling
from transformer.analysis.one_weight import Walk, place, sites, walk
from transformer.analysis.tiled_attention import Block, Tile, empty_places, tiles, token_bytes
from transformer.i18n import joined, say, say_n
from transformer.i18n.sentence import digits
from transformer.model.anatomy import EVERY_PART, anatomy
from transformer.runs.apply_interventions import tap_for

MOST_ROWS: Final = 12  # tiles of the table, and blocks that are drawn: those before them are left out


@dataclass(frozen=True)
class Fast(RunScene):
    """A row of attention that is read in tiles, and the KV cache of the step."""

    walk: Walk  # the row, as a softmax over all of it gives it
    axes: MapAxes  # what rows and columns are

    @property
    def size(self) -> int:
        """Keys of a tile."""
        return min(self.run.view.of(InsideLook).tile_keys, len(self.axes.keys))

    @cached_property
    def tiles(self) -> tuple[Tile, ...]:
        """All tiles of the row."""
        return tiles(self.walk.masked, self.walk.values, size=self.size)

    @property
    def at(self) -> int:
        """The tile that is read, from 0."""
        return min(self.run.view.of(InsideLook).tile, len(self.tiles)) - 1

    @property
    def whose(self) -> str:
        """Which row, for titles."""
        w = self.walk
        query = self.axes.queries[w.query]
        return say("layer {layer}, head {head}, query {query}", layer=w.layer + 1, head=w.head + 1, query=query)

    @cached_property
    def texts(self) -> list[tuple[int, ...]]:
        """The tokens of each text in the cache at this step: the output, or all results of a beam search."""
        run, trace = self.run, self.run.trace
        n, begun = trace.row_of(run.view.step) + 1, trace.read_ids[: trace.first_row + 1]
        if len(trace.hypotheses) < 2 or run.view.guess:  # other results would say what comes
            return [trace.read_ids[:n]]
        return [(*begun, *one.ids[:-1])[:n] for one in trace.hypotheses]

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks that hold them."""
        return tiling.blocks(self.texts, size=self.run.view.of(InsideLook).block)


def side_of(run: ViewedRun) -> Side:
    """The side of the queries."""
    return SIDE_OF[EVERY_PART.attention(run.view.kind).stack]


def layer_of(run: ViewedRun) -> int:
    """The selected layer; there is no choice of all layers, as on other pages."""
    return min(run.view.layer or 0, anatomy(run.checkpoint.config).attention(run.view.kind).n_layers - 1)


def n_heads(run: ViewedRun) -> int:
    """Heads of that layer."""
    return run.checkpoint.config.of(EVERY_PART.attention(run.view.kind).stack).n_heads


def open_fast(run: ViewedRun) -> Fast:
    """The selected row; errors as of `ModelAccess`, and where the model's numbers are not finite."""
    kind, layer, checkpoint = run.view.kind, layer_of(run), run.checkpoint
    axes, where = sides(run.visible, kind), place(kind, layer)
    model_does = checkpoint.model.attentions(kind)[layer].scoring
    found = walk(
        run.work.replay(checkpoint, run.trace, sites(kind, layer, config=checkpoint.config)),
        checkpoint.model,
        kind=kind,
        layer=layer,
        head=min(run.view.head or 0, n_heads(run) - 1),
        query=token_of(run, side_of(run), axes.queries),
        n_keys=len(axes.keys),
        how=tap_for(run.trace.query.interventions, checkpoint).child(where).setting("scoring", model_does),
    )
    return Fast(run, found, axes)


FAST = INSIDE.part("fast", open_fast)


@FAST.picture("tile_scores", say("Softmax, tile by tile: the scores"))
def scores(o: Fast) -> Plot:
    """The scores of the row in tiles, with the largest one so far."""
    w, tile, n = o.walk, o.tiles[o.at], len(o.tiles)
    spec = tile_scores_spec(
        w.masked,
        o.axes.keys,
        [(one.end, one.peak) for one in o.tiles[: o.at + 1]],
        size=o.size,
        allowed=w.allowed,
        key_axis=o.axes.key_axis,
        side=o.axes.key_side,
        title=say("Scores in tiles: {whose}", whose=o.whose),
    )
    alt = say("{attention}, {whose}: scores of {n} keys in {tiles} tiles, of which tile {tile} is being read.",
              attention=KIND_NAMES[w.kind], whose=o.whose, n=len(o.axes.keys), tiles=n, tile=o.at + 1)  # fmt: skip
    which = say("Tile {tile} of {n}, keys {keys}.", tile=o.at + 1, n=n, keys=_keys(tile))
    return Plot(spec=spec, alt=alt, said=Captions(below=joined(" ", [which, _what_happens(o)]), table=_kept(o)))


def _keys(tile: Tile) -> str:
    return f"{tile.first + 1}–{tile.end}" if tile.end > tile.first + 1 else str(tile.end)


def _what_happens(o: Fast) -> str:
    """What the tile does to what is kept."""
    tile, old = o.tiles[o.at], o.tiles[o.at - 1].peak if o.at else -np.inf
    if not tile.n_open:
        return say("The mask closes all of its keys, so it is skipped.")
    if np.isneginf(old):
        return say("Its largest score, {peak}, is the first m.", peak=digits(tile.peak))
    if tile.factor == 1:
        return say("The largest score m stays {peak}, so l and o are not rescaled.", peak=digits(tile.peak))
    return say(
        "The largest score m rises from {old} to {peak}, so the l and o so far are multiplied by "
        "exp({old} − {peak}) = {factor} before this tile's terms are added.",
        old=digits(old),
        peak=digits(tile.peak),
        factor=digits(tile.factor),
    )


def _kept(o: Fast) -> CaptionTable:
    begun = max(o.at + 1 - MOST_ROWS, 0)
    rows = []
    for tile in o.tiles[begun : o.at + 1]:
        numbers = (tile.factor, tile.total, _apart(tile.output, o.walk.head_out))
        peak = digits(tile.peak) if np.isfinite(tile.peak) else "−∞"
        rows.append((_keys(tile), peak, *map(digits, numbers)))
    names = [
        say("Keys of the tile"),
        say("Largest score m"),
        say("Factor exp(m_old − m_new)"),
        say("Sum l"),
        say("Largest difference of o / l from the whole row"),
    ]
    return CaptionTable(columns=names, rows=rows)


def _apart(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(one - other).max(initial=0.0))


@FAST.picture("tile_output", say("Softmax, tile by tile: the output"))
def output(o: Fast) -> Plot:
    """The head's output after the tile, and as it is in the end."""
    tile = o.tiles[o.at]
    title = say("The head's output after tile {tile} of {n}", tile=o.at + 1, n=len(o.tiles))
    spec = tile_output_spec(tile.output, o.walk.head_out, title=title)
    alt = say("The {n} numbers of the head's output after tile {tile}, and by the softmax over the whole row.",
              n=o.walk.d_head, tile=o.at + 1)  # fmt: skip
    last = o.tiles[-1]
    weights = np.exp(o.walk.masked - last.peak) / last.total if last.total else o.walk.weights
    said = say(
        "After the last tile, o / l differs from the output of the whole row by at most {output}, and the weights "
        "exp(score − m) / l by at most {weights} (both computed in 64 bits). The model's own output, computed in 32 "
        "bits, differs by at most {model}.",
        output=digits(_apart(last.output, o.walk.head_out)),
        weights=digits(_apart(weights, o.walk.weights)),
        model=digits(o.walk.differences.head),
    )
    return Plot(spec=spec, alt=alt, said=Captions(below=said, pale=True))


@FAST.picture("cache_blocks", say("Blocks of the KV cache"))
def blocks(o: Fast) -> Plot | None:
    """Which block holds which token at the step."""
    trace, size, step = o.run.trace, o.run.view.of(InsideLook).block, o.run.view.step
    if not trace.n_steps:
        return None
    newest, drawn = trace.row_of(step), o.blocks[-MOST_ROWS:]
    rows = []
    for number, one in enumerate(drawn, len(o.blocks) - len(drawn) + 1):
        name, pieces = _name(number, one, len(o.texts)), [trace.vocabulary[i] for i in one.ids]
        here = newest - one.first
        rows.append(BlockRow(name, one.first, pieces, here if 0 <= here < len(pieces) else None))
    spec = cache_blocks_spec(rows, size, title=say("Blocks of the KV cache at step {step}", step=step + 1))
    alt = say_n("{n} block of the KV cache, with the tokens that it holds at step {step}.",
                "{n} blocks of the KV cache, with the tokens that they hold at step {step}.", len(o.blocks),
                step=step + 1)  # fmt: skip
    return Plot(spec=spec, alt=alt, said=_shared(o, len(drawn)))


def _name(number: int, one: Block, n_texts: int) -> str:
    """A block, and where there are several texts which of them read it."""
    if n_texts == 1:
        return say("Block {n}", n=number)
    return say("Block {n} (of {texts})", n=number, texts=", ".join(str(text + 1) for text in one.holders))


def _shared(o: Fast, drawn: int) -> Captions | None:
    """How many blocks several texts share, and how many are not drawn."""
    said = []
    if drawn < len(o.blocks):
        said.append(say("Only the last {drawn} of {n} blocks are shown.", drawn=drawn, n=len(o.blocks)))
    if len(o.texts) > 1:
        each = sum(-(-len(ids) // o.run.view.of(InsideLook).block) for ids in o.texts)
        said.append(
            say(
                "The {texts} results of the beam search need {n} blocks instead of {each}: results that begin alike "
                "share blocks until they differ; then one of them gets a copy. Dropped beams are not shown.",
                texts=len(o.texts), n=len(o.blocks), each=each,
            )
        )  # fmt: skip
    return Captions(below=joined(" ", said), pale=True) if said else None


@FAST.picture("cache_places", say("Places of the KV cache, filled and empty"))
def places(o: Fast) -> Plot | None:
    """What blocks keep empty, and what one place for each token that the model could read would."""
    trace, config, size = o.run.trace, o.run.checkpoint.config, o.run.view.of(InsideLook).block
    if not trace.n_steps:
        return None
    filled, each = sum(len(one.ids) for one in o.blocks), sum(map(len, o.texts))
    names = [say("Blocks of {n}", n=size), say("Room for {n:,}", n=config.max_len)]
    empty = [empty_places(o.blocks, size=size), len(o.texts) * config.max_len - each]
    title = say("Places of the KV cache at step {step}", step=o.run.view.step + 1)
    spec = cache_places_spec(names, [filled, each], empty, token_bytes=token_bytes(config), title=title)
    alt = say("Places of the KV cache: {blocks} are empty in blocks, {whole} with room for the longest text.",
              blocks=empty[0], whole=empty[1])  # fmt: skip
    return Plot(spec=spec, alt=alt, said=Captions(below=_in_bytes(o, empty)))


def _in_bytes(o: Fast, empty: Sequence[int]) -> str:
    """What a block takes, and what both ways keep empty."""
    config, size = o.run.checkpoint.config, o.run.view.of(InsideLook).block
    of_token = token_bytes(config)
    decoder = config.of("decoder")
    return joined(" ", [
        say(
            "A block of {size} tokens takes {n:,} bytes: {layers} layers × 2 (key and value) × {heads} heads × "
            "{d_head} numbers × 4 bytes × {size} tokens.",
            size=size, n=size * of_token, layers=config.n_decoder_layers, heads=decoder.n_kv_heads,
            d_head=decoder.d_head,
        ),
        say("At this step, blocks keep {blocks:,} bytes empty; room for this model's longest text keeps {whole:,}.",
            blocks=empty[0] * of_token, whole=empty[1] * of_token),
    ])  # fmt: skip
