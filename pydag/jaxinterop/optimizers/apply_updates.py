# SPDX-License-Identifier: Apache-2.0
"""`apply_updates`: a model with updates added to it."""

import contextlib
from typing import Any

import jax
import jax.numpy as jnp

from pydag.errors import SharingError
from pydag.jaxinterop.content.content import Content
from pydag.jaxinterop.content.dag import Dag as PackedDag
from pydag.jaxinterop.content.dag import dag_of
from pydag.jaxinterop.content.leaves import is_like_array
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.content.selection import is_variable
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.help import with_wrapper_options
from pydag.jaxinterop.typed import T
from pydag.structure.text import short_repr
from pydag.typing import Dag, Identity, Leaf

from .nested import apart, tree_of
from .state import untied


def _added(parameter: Leaf, update: Leaf, content: Content, number: int) -> Leaf:
    """The sum, of the type of the parameter, and weakly typed where that is."""
    if is_like_array(parameter):
        old = jnp.asarray(parameter)
        new = jnp.asarray(parameter + update).astype(old.dtype)
        if old.weak_type and not new.weak_type:
            new = jax_private.convert_element_type(new, old.dtype, weak_type=True)
        return new
    if is_variable(parameter):
        return parameter.replace(_added(parameter[...], update, content, number))
    found: Any = None
    with contextlib.suppress(Exception):
        found = parameter + update
    if found is None or jax.typeof(found) != jax.typeof(parameter):
        raise TypeError(
            f"apply_updates can't update {content.paths('params')[number]}: its type "
            f"{jax.typeof(parameter)} has no sum with {short_repr(update)} that is of this type\n"
            "  Give the class an __add__; or set updates to None there, and update it in the "
            "training step."
        )
    return found


@with_wrapper_options
def apply_updates(params: T, updates: Dag, *, namespace: str = "", identity: Identity = "all") -> T:
    """A model with updates added to it; as `optax.apply_updates`, and what is shared stays shared.

    The leaves keep their types. Where the update is None, the leaf stays. A ref that has an update
    gets a new content, and the new model holds the same ref.

    Args:
        params: The model.
        updates: What `update` of an `optimizer` returns; or any DAG of this structure. It may share
            more than the model.

    Raises:
        SharingError: There are two updates for one leaf.
        TypeError: A leaf is no array, and its type can't add an update.
        ValueError: The updates are structured differently.

    >>> w, change = jnp.ones(2), jnp.full(2, -0.5)
    >>> new = apply_updates({"a": w, "b": w, "n": 3}, {"a": change, "b": change, "n": None})
    >>> new["a"] is new["b"], new["a"].tolist(), new["n"]
    (True, [0.5, 0.5], 3)
    """
    given, content = apart(params, Options(namespace, identity))
    leaves = list(given)
    try:
        found = content.match(tree_of(updates), "updates")
    except SharingError as error:
        raise untied("there are two updates for one leaf", error) from None
    except ValueError as error:
        error.add_note("Pass the model and its updates: apply_updates(model, updates).")
        raise
    written: list[tuple[Leaf, Leaf]] = []
    for i, (leaf, update) in enumerate(zip(leaves, found, strict=True)):
        if update is None or getattr(update, "dtype", None) == jax.dtypes.float0:
            continue
        if jax_private.is_ref(leaf):
            written.append((leaf, _added(leaf[...], update, content, i)))
        else:
            leaves[i] = _added(leaf, update, content, i)
    new: Any
    if isinstance(params, PackedDag):
        new = dag_of(content, leaves, params._options)
    else:
        new = content.build(leaves)
    for ref, value in written:
        ref[...] = value
    return new  # type: ignore[no-any-return]  # it is of the class of `params`
