# SPDX-License-Identifier: Apache-2.0
"""`mask`: masks and labels that are trees like the model, for transformations of optax's."""

from collections.abc import Callable
from typing import Any

import jax

import pydag._core as _core
from pydag.ops.select import dag_mask
from pydag.structure.text import short_repr
from pydag.typing import Dag, Where

from .nested import is_variable_class


def mask(tree: Dag, where: Where | None = None, *, namespace: str = "") -> Callable[[Any], Any]:
    """A function for optax that makes a mask, or labels, of what an `optimizer` shows to optax.

    Args:
        tree: A tree like the model, or a prefix of it, with an answer for each leaf: a flag, a
            label. A shared array gets the answer at the first of its paths.
        where: Given, `tree` is the model, and the mask is that of `pydag.dag_mask(tree, where)`.
        namespace: As in `pydag.dag_flatten`.

    Raises:
        TypeError: The tree is a selection.

    >>> import optax
    >>> model = {"weight": jnp.ones(2), "scale": jnp.ones(())}
    >>> decayed = optax.add_decayed_weights(0.1, mask(model, "*weight*"))
    >>> zeros = {"weight": jnp.zeros(2), "scale": jnp.zeros(())}
    >>> tx = pydag.jaxinterop.optimizer(decayed)
    >>> tx.update(zeros, tx.init(model), model)[0]["scale"].item()
    0.0
    """
    if isinstance(tree, str) or (callable(tree) and _core.is_leaf(tree, namespace=namespace)):
        raise TypeError(
            f"mask takes the model first, got {short_repr(tree)}, which would be one answer for "
            "all\n  A selection is the second argument: pj.mask(model, where), such as "
            'pj.mask(model, "*.weight"). Labels are a tree like the model.'
        )
    answers = tree if where is None else dag_mask(tree, where, namespace=namespace)
    return _Mask(answers, namespace)


class _Mask:
    def __init__(self, answers: Dag, namespace: str) -> None:
        self._answers, self._namespace = answers, namespace

    def __call__(self, nested: Any) -> Any:
        return self._at(self._answers, nested, "mask")

    def __bool__(self) -> bool:  # it would be one answer for everything
        raise TypeError(
            "pydag.jaxinterop.mask makes a function, and this transformation of optax's takes "
            "trees alone (such as optax.selective_transform)\n  Call it: "
            "mask(tree)(what optax sees, a nested dict of the arrays); or take optax.masked, "
            "optax.partition or optax.freeze, which take functions."
        )

    def _at(self, node: Any, nested: Any, path: str) -> Any:
        """The answers of a tree for each place of a nested dict."""
        while is_variable_class(type(node)):
            [node], _, _ = _core.open_one_level(node, namespace=self._namespace)
        if type(nested) is not dict:
            return node
        if _core.is_leaf(node, namespace=self._namespace):
            return jax.tree.map(lambda _: node, nested)
        children, entries, _ = _core.open_one_level(node, namespace=self._namespace)
        found: dict[Any, Any] = {}
        for names in (map(str, entries), map(repr, entries), entries):
            found.update(zip(names, children, strict=True))
        for key in nested:
            if key not in found:
                raise ValueError(
                    f"{path} is a tree for another model: it has {list(entries)}, and not {key!r}\n"
                    "  Make it of the model: pydag.dag_map or pydag.dag_mask."
                )
        return {key: self._at(found[key], x, f"{path}[{key!r}]") for key, x in nested.items()}
