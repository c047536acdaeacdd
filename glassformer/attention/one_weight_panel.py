"""Part "One weight": menus of query and key, then q·k, score, mask, softmax table and head output in numbers."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Literal

from glassformer.attention import one_weight_pictures as pictures
from glassformer.attention import one_weight_text as text
from glassformer.attention.attention_panels import below, for_head, one_head
from glassformer.attention.one_weight_pictures import KEY, OpenWeight, open_weight, opening
from glassformer.runs.error_boundary import attempt
from glassformer.runs.open_run import AnyRun, OpenMaps, OpenRun
from glassformer.runs.picture import Picture
from glassformer.runs.show import show
from glassformer.shared import controls, drawing
from glassformer.shared.i18n import frame, st
from transformer.analysis.costs import said as said_of
from transformer.analysis.costs import stand_ins
from transformer.analysis.one_weight import Walk, strongest
from transformer.i18n import joined, say, say_n
from transformer.i18n.sentence import written
from transformer.model.anatomy import EVERY_PART, anatomy
from transformer.model.config import ModelConfig

QUERY_CHOICE, KEY_CHOICE, TABLE, VECTORS = "walk_query", "walk_key", "walk_table", "walk_vectors"

DIGITS: Final = say(
    "In the formulas, inputs are rounded to at most {most} digits. Results have at most {fewer} digits, and only "
    "those that a calculator also gives for these inputs. Downloaded files have the exact numbers.",
    most=text.INPUT_DIGITS,
    fewer=text.RESULT_DIGITS,
)
NEEDS_A_MODEL: Final = say(
    "This part shows how a weight is computed. It needs a model's queries, keys and values, but you have opened "
    "only attention maps. Use the other parts, or choose a checkpoint in the sidebar."
)
READY: Final = say("q and k are shown as the model multiplies them, after normalisation or rotation by position.")
WHY_THIS_STEP = say(
    "You have not chosen a weight yet, so here is one to start with. Its row is the step at which the model was "
    "least sure what to write. Its head is the one whose largest weight in this row is closest to 0.6, which "
    "leaves some weight for other keys."
)
WHY_THIS_ROW = say(
    "You have not chosen a weight yet, so here is one to start with: among the largest weights of each row in "
    "every head, it is the one closest to 0.6, which leaves some weight for other keys."
)
Written = tuple[str, str, str]
"""A step as it is written: its heading, what it does, its formula."""


def draw(run: AnyRun, row: Any) -> None:
    """Draw the part "One weight" of the Attention page, with its controls in `row`; it says itself how it differs."""
    if isinstance(run, OpenMaps):
        st.info(NEEDS_A_MODEL, icon=":material/info:")
        return
    shown = opening(run.visible)
    with row:
        one_head(run, {"layer": shown.layer, "head": shown.head}, query=shown.query)
    below(run, partial(_walk, run, row))
    for_head(run, shown.layer, shown.head)


def _walk(run: OpenRun, row: Any) -> None:
    opened = attempt(lambda: open_weight(run))
    if opened is None:
        return
    if run.trace.query.interventions and text.is_apart(opened.walk):
        st.warning(text.changed(opened.walk), icon=":material/science:")
    _choices(opened, row)
    for stages in STAGES:  # two side by side where there is room
        drawing.beside(*(partial(_stage, opened, *parts) for parts in stages))
    drawing.explain(DIGITS, text.differences(opened.walk))
    _vectors(opened)


def _stage(o: OpenWeight, *parts: Callable[[OpenWeight], Written | None] | Picture[OpenWeight]) -> None:
    for part in parts:
        if isinstance(part, Picture):
            show(part, o)
        elif (written := part(o)) is not None:
            heading, said, formula = written
            if heading:
                st.markdown(heading, help=said)
            after = [] if heading or not said else ["", "\u200b"]  # the question mark would stand within the formula
            st.markdown(joined("\n", ["$$", formula, "$$", *after]), help=None if heading else said)


# ---------------------------------------------------------------- choosing a cell


def _choices(o: OpenWeight, row: Any) -> None:
    """Draw two menus in `row`, the head's map to pick a cell from, and the weight in a sentence."""
    with row:
        _menu(o, QUERY_CHOICE, "query", o.axes.current if o.own_row is None else o.own_row)
        _menu(o, KEY_CHOICE, "key", strongest(o.walk.weights, o.walk.allowed))
    n_rows, n_columns = len(o.axes.queries), len(o.axes.keys)
    if max(n_rows, n_columns) > pictures.MOST_ON_MAP:
        said = say(
            "The map has {rows} × {columns} cells, too many to choose one by clicking. Use the menus.",
            rows=n_rows,
            columns=n_columns,
        )
        st.caption(said)
    show(pictures.head_map, o)
    why = WHY_THIS_STEP if EVERY_PART.attention(o.walk.kind).stack == "decoder" else WHY_THIS_ROW
    st.markdown(_in_words(o))
    drawing.explain(*_whose(o.config, o.walk), why if o.own_row is not None else "")


def _menu(o: OpenWeight, widget: str, name: Literal["query", "key"], follows: int | None) -> None:
    """Draw a menu of pieces whose first entry follows the step or the weights, if there is something to follow."""
    query = name == "query"
    pieces: dict[int | None, str] = dict(controls.labelled(o.axes.queries if query else o.axes.keys).items())
    if follows is not None:
        piece = pieces[follows]
        following = say("Largest weight ({piece})", piece=piece)
        if query:
            following = say("The current step ({piece})", piece=piece)
        if query and o.own_row is not None:
            following = say("A good one to start with ({piece})", piece=piece)
        pieces = {None: following, **pieces}
    kept = controls.field(o.run.slot, name, key=widget)
    controls.menu(kept, o.axes.query_axis if query else o.axes.key_axis, pieces)


def _in_words(o: OpenWeight) -> str:
    w, reason, key, query = o.walk, o.reasons[o.walk.key], drawing.plain(o.key), drawing.plain(o.query)
    weight = text.number(w.weights[w.key], 4)
    if reason and not w.weights[w.key]:
        return say("In layer {layer}, head {head}, the query **{query}** gives the key **{key}** no weight "
                   "({reason}).", layer=w.layer + 1, head=w.head + 1, key=key, reason=reason, query=query)  # fmt: skip
    return say("In layer {layer}, head {head}, the query **{query}** gives the key **{key}** a weight of "
               "**{weight}**.", layer=w.layer + 1, head=w.head + 1, key=key, weight=weight,
               query=query)  # fmt: skip


def _whose(config: ModelConfig, w: Walk) -> Sequence[str]:
    """Whose vectors q, k and v are, and with how many heads this one shares k and v."""
    parts = anatomy(config)
    attention = parts.attention(w.kind)
    if attention.keys_from != attention.stack:
        said = [say("q comes from the output so far, k and v from the memory (the encoder's last vectors).")]
    elif attention.stack == "encoder":
        said = [say("q, k and v all come from the source.")]
    elif parts.reads:
        said = [say("q, k and v all come from the output so far.")]
    else:
        said = [say("q, k and v all come from the prompt and the output so far.")]
    if text.is_changed(config, w):
        said.append(READY)
    size = config.n_heads // config.n_kv_heads  # only stacks that have the same heads share keys
    if size == 1:
        return said
    group = w.head // size
    shared = say_n("All {n_heads} heads share one key-value head, so k and v are the same for each of them.",
                   "The {n_heads} heads share {n} key-value heads. Here, k and v come from key-value head {group}, "
                   "which heads {first} to {last} use.", config.n_kv_heads, n_heads=config.n_heads, group=group + 1,
                   first=group * size + 1, last=(group + 1) * size)  # fmt: skip
    return [*said, shared]


# ---------------------------------------------------------------- the steps


def _query(o: OpenWeight) -> Written:
    said = [
        say(
            "A database returns the value whose key equals the query. Attention compares the query with every key and "
            "takes a share of every value."
        ),
        say(
            "W_Q turns the token's vector x into q, what the token looks for. The formula shows the number of q with "
            "the largest absolute value."
        ),
    ]
    if text.is_changed(o.config, o.walk):
        said.append(say("The model then normalises or rotates q and k."))
    return say("##### 1. q = W_Q · x"), joined(" ", said), text.projection("q", o.begin[0])


def _key(o: OpenWeight) -> Written:
    said = [say("W_K turns the token's vector x into k, what the token offers.")]
    if o.walk.kind != "cross":
        said.append(say("Without W_Q and W_K, most tokens would fit themselves best: see “Without parameters”."))
    return say("##### k = W_K · x"), joined(" ", said), text.projection("k", o.begin[1])


def _dot(o: OpenWeight) -> Written:
    said = say(
        "The query's vector q and the key's vector k have {n} numbers each. Multiply them number by number and "
        "add up the products. The largest terms are:",
        n=o.walk.d_head,
    )
    return say("##### 2. q · k"), said, text.dot(o.walk)


def _scores(o: OpenWeight) -> Written:
    w = o.walk
    if text.is_otherwise(o.config, w):
        return text.score_stage(o.config, w)
    said = say(
        "q · k is computed in the same way for every key. With many dimensions, scores would grow so large "
        "that the softmax would give almost all the weight to one key; dividing by √{n} prevents this.",
        n=w.d_head,
    )
    return say("##### 3. ÷ √d_head: score"), said, text.score(w)


def _mask(o: OpenWeight) -> Written:
    w, reason = o.walk, o.reasons[o.walk.key]
    n_closed = int((~w.allowed).sum())
    said: list[str] = [
        say("The mask adds 0 to the scores of keys that the query may see, and −∞ to those of all other keys.")
        if w.how.fill is None
        else text.replaced(w.how.fill),
        say_n("In this row, the mask closes {n:,} key.", "In this row, the mask closes {n:,} keys.", n_closed),
        say("The chosen key is {reason}.", reason=reason) if reason else say("The mask leaves the chosen key open:"),
    ]
    return say("##### 4. + mask"), joined(" ", said), text.masked(w)


def _softmax(o: OpenWeight) -> Written:
    said = say("The mask closes every key, so all weights are 0.")
    if o.walk.peak is not None:
        said = say(
            "Subtract the row's largest score from each score to get d, raise e to the power d, and divide by the "
            "sum of these powers over the row. The weights are between 0 and 1 and sum to 1."
        )
    return say("##### 5. softmax: weights"), said, text.softmax(o.walk)


def _table(o: OpenWeight) -> None:
    """The softmax of the row, line by line; the largest weights where there are many keys."""
    rows, total = text.softmax_table(o.walk)
    lines = []
    for row in rows:
        name: str = text.other_keys(row.n_keys)
        if row.key is not None:
            name = f"{row.key + 1}: {drawing.plain(o.axes.keys[row.key])}"
        cells = [name, *map(_written, (row.score, row.exp, row.weight))]
        lines.append([f"**{cell}**" if row.key == o.walk.key and cell else cell for cell in cells])
    lines.append([say("Sum"), "", _written(total), "1" if o.walk.peak is not None else "0"])
    if o.walk.peak is not None:
        st.markdown(say("The largest score, max, is {score}.", score=_written(text.number(o.walk.peak))))
    with st.container(key=o.run.key(TABLE)):
        table = frame(lines, columns=[KEY, say("Score"), say("exp(score − max)"), say("Weight")])
        alt = say("Scores, exponentials and weights of the keys for the query {query}.", query=o.query)
        st.table(table, hide_index=True, alt=alt)


def _written(number: str) -> str:
    """A number in Python's writing as the formulas beside the table have it: −0.5534, 1.5 × 10⁻⁷, −∞."""
    return written(number).replace("inf", "∞")


def _head_output(o: OpenWeight) -> Written:
    dimension, formula = text.head_output(o.walk)
    said = say(
        "Each key's value vector v is multiplied by its weight; the sum is the head's output o. The number "
        "with the largest absolute value is in dimension {place}:",
        place=dimension,
    )
    return say("##### 6. · V: the head's output"), said, formula


def _share(o: OpenWeight) -> Written:
    dimension, formula = text.share(o.walk)
    place = anatomy(o.config).attention(o.walk.kind)
    beginning = f"{place.stack}.layers.{o.walk.layer}.{place.sublayer}."
    if absent := said_of(stand_ins(o.run.checkpoint.model), beginning):
        return say("##### 7. No W_O: what this head adds"), absent[0], formula
    said = say(
        "This head's {n} columns of W_O turn o into y, its contribution to the sub-layer's output. The number "
        "with the largest absolute value is in dimension {place}:",
        n=o.walk.d_head,
        place=dimension,
    )
    return say("##### 7. · W_O: what this head adds"), said, formula


def _against_others(o: OpenWeight) -> Written:
    said = say(
        "How large is this contribution compared with those of the other heads? Its length, divided by the sum of "
        "the lengths of all heads' contributions (the bias is not counted):"
    )
    return "", said, text.norm_share(o.walk)


STAGES: Final = (
    ((_query,), (_key,)),
    ((_dot,), (pictures.products,)),
    ((_scores, pictures.scores), (_mask, pictures.masked)),
    ((_softmax, pictures.weights), (_table,)),
    ((_head_output, pictures.values), (_share, pictures.share)),
    ((_against_others,), (pictures.lengths,)),
)


def _vectors(o: OpenWeight) -> None:
    """Draw q, k and v of all tokens, when they are asked for."""
    w, key = o.walk, o.run.key(VECTORS)
    label = say("q, k and v of every token in layer {layer}, head {head}", layer=w.layer + 1, head=w.head + 1)
    if not (expander := st.expander(label, key=key, on_change="rerun")).open:
        return
    with expander:
        for column, picture in zip(st.columns(3), pictures.VECTORS, strict=True):
            with column:
                show(picture, o)
