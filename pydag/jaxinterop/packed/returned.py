# SPDX-License-Identifier: Apache-2.0
"""What an exported function returns, where JAX would see the result otherwise than the user.

It and `Dag` are what `jax.export` writes down. A process that reads such a function needn't compile
any, so nothing of `compiled/` is needed here.
"""

from collections.abc import Iterable
from typing import Any, cast

from jax import tree_util

from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.static.paths import paths_of
from pydag.jaxinterop.static.untraced import Untraced
from pydag.typing import Leaf

from .dag import Dag, rebuilt


class Returned:
    """A result as a pytree of its distinct leaves, from which JAX builds it again."""

    def __init__(self, untraced: Untraced, leaves: Iterable[Leaf]) -> None:
        self.untraced, self.leaves = untraced, tuple(leaves)


def _built(untraced: Untraced, leaves: Iterable[Any]) -> Any:
    """The result; or a `Returned` that holds what JAX has for each leaf, such as a sharding.

    A user's class may refuse to hold what is no array.
    """
    held = tuple(leaves)
    is_result = all(hasattr(leaf, "dtype") for leaf in held)
    return untraced.build(held) if is_result else Returned(untraced, held)


tree_util.register_pytree_with_keys(
    Returned,
    lambda r: (tuple(zip(paths_of(r.untraced), r.leaves, strict=True)), r.untraced),
    _built,
    lambda r: (r.leaves, r.untraced),
)


for _cls, _make in ((Returned, Returned), (Dag, rebuilt)):
    _name = f"pydag.jaxinterop.{_cls.__name__}"
    jax_private.exportable(_cls, _name, Untraced.written, Untraced.read, cast(Any, _make))
