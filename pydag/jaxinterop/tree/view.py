# SPDX-License-Identifier: Apache-2.0
"""`view`: shows what JAX does with each part of a DAG.

Nothing is decided here. Each part is given to the checks that the wrappers make, and an error's own
text is shown.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any, Unpack

import jax
import jax.numpy as jnp

from pydag._core import PyDagSpec
from pydag.errors import SharingError
from pydag.jaxinterop.content.content import Content
from pydag.jaxinterop.content.leaves import is_array_type
from pydag.jaxinterop.content.options import Options, path_text, way_text
from pydag.jaxinterop.content.refused import check_value
from pydag.jaxinterop.content.selection import are_no_state, is_differentiable
from pydag.jaxinterop.content.static import (
    check_nodes,
    leaves_of_modules,
    static_positions,
)
from pydag.jaxinterop.foreign.jax_private import is_ref
from pydag.jaxinterop.help import with_wrapper_options
from pydag.jaxinterop.typed import StaticOptions
from pydag.structure.listing import Listing
from pydag.typing import Dag, Leaf
from pydag.views.leaves import Infos
from pydag.views.model import ViewModel
from pydag.views.view import View, check_bounds

_ROOT = "tree"


@with_wrapper_options
def view(
    tree: Dag,
    depth: int | None = None,
    width: int | None = 100,
    limit: int | None = 200,
    **options: Unpack[StaticOptions],
) -> View:
    """Show what JAX does with each part of a DAG, as `pydag.view` shows the DAG.

    * *traced*: JAX gets it, and there is a *derivative* or none. *state* is what NNX holds in
      Variables that are no `nnx.Param`. Random *keys* and *refs* are traced, too. State and refs
      have a derivative only by `wrt=`, and keys have none.
    * *configuration* of a module and *static values* are part of what a function is compiled for;
      so is a *constant*, which `static=` selects.
    * *refused*: a wrapper raises an error. Below the totals is what the error says to do instead.

    Args:
        depth: How many levels below the root are shown; None: all.
        width: The longest line, in characters; None: any length.
        limit: The most lines, and rows of the table; None: all of them.

    Raises:
        TypeError: A meta field holds an array, in which case no function can flatten the DAG.
        CycleError: An object contains itself.
        ValueError: `static=` selects nothing.

    >>> w = jnp.ones((128, 64))
    >>> print(view({"encoder": w, "decoder": w, "steps": 3, "act": "relu", "names": {"a"}}))
    dict
    ├─ ['act']: 'relu' — static value
    ├─ ['decoder']: &0 f32[128,64] — traced, derivative
    ├─ ['encoder']: *0
    ├─ ['names']: {'a'} — refused
    └─ ['steps']: 3 — traced, no derivative
    ...
    refused at tree['names']: Pass a frozenset.
    """
    check_bounds(depth, width, limit)
    own = Options.of(options)
    own.check_selects(tree, _ROOT)
    leaves, spec = own.flatten(tree)
    listing, cures = Listing.of(spec), dict[str, tuple[str, int]]()

    def accepts(place: Callable[[], str], check: Callable[..., Any], *args: Any) -> bool:
        """Whether a check raises no error; else its cure is kept."""
        try:
            check(*args)
        except Exception as error:
            cure = str(error).rpartition("\n")[2].strip()
            first, count = cures[cure] if cure in cures else (place(), 0)
            cures[cure] = first, count + 1
            return False
        return True

    notes = {listing.leaves[i]: word for i, word in _of_leaves(leaves, spec, own, accepts).items()}
    for position in range(len(listing.records)):
        place = functools.partial(_place, listing, position)
        if not accepts(place, check_nodes, listing, [position], _ROOT, own.namespace):
            notes[position] = "refused"
    remarks = [
        f"refused at {first}{f' and {count - 1} more' if count > 1 else ''}: {cure}"
        for cure, (first, count) in cures.items()
    ]
    return View(ViewModel(listing, Infos.of(leaves), notes, remarks), depth, width, limit)


def _place(listing: Listing, position: int) -> str:
    return way_text(listing, listing.way(position), _ROOT)


def _of_leaves(
    leaves: list[Leaf], spec: PyDagSpec, options: Options, accepts: Callable[..., bool]
) -> Mapping[int, str]:
    """The word for each leaf."""
    is_chosen = options.static is not None
    selected = options.selected(leaves, spec, _ROOT, False) if is_chosen else []
    mixed: dict[int, SharingError] = {}
    static = static_positions(leaves, spec, _ROOT, selected, mixed)
    words = dict.fromkeys(static, "static value")
    words |= dict.fromkeys(leaves_of_modules(spec)[0].intersection(static), "configuration")
    words |= dict.fromkeys(selected, "constant")
    for i in range(spec.num_leaves):
        place = functools.partial(path_text, spec, _ROOT, i)
        if i in mixed:
            is_accepted = accepts(place, _raise, mixed[i])
        elif i in words:
            is_accepted = accepts(place, check_value, leaves[i], place, i in selected)
        else:
            is_accepted = accepts(place, jax.typeof, leaves[i])
        if not is_accepted:
            words[i] = "refused"
    positions = tuple(sorted(words))
    content = Content(spec, positions, tuple([leaves[i] for i in positions]))
    traced = content.traced_among(leaves)
    no_state = are_no_state(content, traced)
    for i, leaf, is_trained in zip(content.traced_positions(), traced, no_state, strict=True):
        words[i] = _of_traced(leaf, is_trained)
    return words


def _raise(error: Exception) -> None:
    raise error


def _of_traced(leaf: Leaf, is_trained: bool) -> str:
    type_: Any = jax.typeof(leaf)
    if is_ref(leaf):
        return "ref"
    if is_array_type(type_) and jnp.issubdtype(type_.dtype, jax.dtypes.prng_key):
        return "key"
    if not is_differentiable(leaf):
        return "traced, no derivative"
    return "traced, derivative" if is_trained else "traced, state"
