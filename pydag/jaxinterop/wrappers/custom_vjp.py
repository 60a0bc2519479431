# SPDX-License-Identifier: Apache-2.0
"""`custom_vjp`: reverse-mode rules, with a cotangent for each object of an argument."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

import pydag._core as _core
from pydag.errors import SharingError
from pydag.jaxinterop.calls import pair_of
from pydag.jaxinterop.content.content import Content
from pydag.jaxinterop.content.leaves import is_traced
from pydag.jaxinterop.content.packed import Packed, packed_with, parts_of
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.help import with_wrapper_options
from pydag.jaxinterop.naming import Source, name_of, named
from pydag.jaxinterop.typed import P, R
from pydag.sharing.tie import retie
from pydag.structure.text import short_repr

from .custom import Custom, built
from .differentiated import as_type_error, tangents_of


@with_wrapper_options
class custom_vjp(Custom[P, R]):  # noqa: N801 (JAX's name)
    """A function of DAGs with reverse-mode rules; as `jax.custom_vjp`.

    An object in an argument has one cotangent, the total, at each of its places; None is zero. A
    result has a cotangent for each place, as in JAX.

    Args:
        fun: The function, of positional arguments; others keep their defaults.

    >>> @custom_vjp
    ... def f(p):
    ...     return p["a"] * p["b"]
    >>> def forward(p):
    ...     return f(p), p
    >>> def backward(p, cotangent):
    ...     both = cotangent * (p["a"] + p["b"])
    ...     return ({"a": both, "b": both},)
    >>> f.defvjp(forward, backward)
    >>> float(jax.grad(lambda w: f({"a": w, "b": w}))(jnp.float32(3.0)))
    6.0
    """

    _transformation = staticmethod(jax.custom_vjp)
    fwd: Callable[..., Any] | None = None
    bwd: Callable[..., Any] | None = None

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
        **jax_options: Any,
    ) -> None:
        """Sets the rules.

        Args:
            fwd: `fwd(*args)` returns `(result, saved)`.
            bwd: `bwd(*nondiff_args, saved, cotangent)` returns a tuple with a cotangent for each
                argument, or None for zero. For a ref it has the cotangent of the content.
            symbolic_zeros, optimize_remat, jax_options: As in JAX.
        """
        self.fwd, self.bwd, own = fwd, bwd, self.own
        forward_source = Source(fwd)

        def forward(*args: Any) -> Any:
            pair = own.called(fwd, args, forward_source)
            result, saved = pair_of(pair, name_of(fwd), "(result, saved)")
            contents = [parts_of(x)[1] for x in args if type(x) is Packed]
            return own.pack(result, args), (own.taken_apart(saved, "saved"), contents)

        def backward(*args: Any) -> tuple[Any, ...]:
            *others, (saved, contents), cotangent = args
            leaves, content, sources = parts_of(cotangent)
            if sources is not None:
                waiting = iter(leaves)
                leaves = [next(waiting) if source < 0 else None for source in sources]
            given = tangents_of(content, leaves)
            found = bwd(*map(built, others), built(saved), given)
            if not isinstance(found, tuple | list) or len(found) != len(contents):
                raise TypeError(
                    f"{name_of(bwd)} must return a tuple with a cotangent for each of "
                    f"{len(contents)} arguments, got {short_repr(found)}"
                )
            what = "the cotangent of argument {} of " + name_of(own.fun)
            both = enumerate(zip(contents, found, strict=True))
            return tuple(_cotangent(*pair, given, what.format(i)) for i, pair in both)

        jax_options |= {"symbolic_zeros": symbolic_zeros, "optimize_remat": optimize_remat}
        rules = named(forward, forward_source), named(backward, Source(bwd))
        self._jax.defvjp(*rules, **jax_options)


def _cotangent(content: Content, found: Any, given: Any, what: str) -> Packed | None:
    """The cotangent of an argument, for JAX: of those of the result, `given`, it may be a sum."""
    if found is None:
        return None
    if is_traced(found) and len(content.traced_positions()) == 1:
        leaves: Sequence[Any] = [found]  # as in JAX, a leaf for a tree of one leaf
    else:
        with as_type_error():
            try:
                leaves = content.match(found, what, what)
            except SharingError as error:
                flat = functools.partial(_core.leaves, namespace=content.spec.namespace)
                if set(map(id, flat(found))).difference(map(id, flat(given))):
                    error.add_note(
                        "A result has a cotangent for each place, and an argument one for each "
                        "object. Add up those of one object: "
                        "pydag.retie(pydag.dag_structure(argument), cotangent, jnp.add)."
                    )
                    raise
                leaves = content.match(retie(content.spec, found, jnp.add), what, what)
    leaves = [None if jax_private.is_ref(leaf) else leaf for leaf in leaves]
    return packed_with(content, leaves)
