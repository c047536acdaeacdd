"""The choice of an attention, of one of its heads, and of a measure; each stands in the row of its part."""

from dataclasses import replace

from glassformer.extensions.corpus.page.corpus_pictures import Scene
from glassformer.runs.sides import KIND_NAMES
from glassformer.shared import choices
from glassformer.shared.choices import Kept
from glassformer.state.view import MAIN
from transformer.i18n import say


def of(name: str, *forgets: str) -> Kept:
    """A field of the view whose change begins with the first page of what is found again."""
    return choices.field(MAIN, name, key=f"corpus_{name}", forgets=("leaf", *forgets))


def choose_kind(scene: Scene) -> None:
    """Draw the choice of an attention, if there are several."""
    kinds = {kind: KIND_NAMES[kind] for kind in scene.kinds}
    if len(kinds) > 1:
        choices.menu(of("kind"), say("Attention"), kinds, otherwise=scene.kind, bare=True, width=185)


def choose_head(scene: Scene) -> None:
    """Draw the choices of an attention, a layer and a head."""
    choose_kind(scene)
    layers, heads = scene.size(scene.kind)
    choices.menu_of_layers(replace(of("layer"), value=scene.head[0]), layers, all_together=False)
    choices.menu_of_heads(replace(of("head"), value=scene.head[1]), heads, all_together=False)


def choose_measure(scene: Scene) -> None:
    """Draw the choice of a measure."""
    names = {name: scene.spoken[scene.kind][name].heading for name in scene.names(scene.kind)}
    kept = of("corpus_measure", "bound")
    choices.menu(kept, say("Measure"), names, otherwise=scene.measure, bare=True, width=145)
