# SPDX-License-Identifier: Apache-2.0
"""What `custom_vjp` and `custom_jvp` have in common, and `custom_jvp`.

Each argument has an identity table of its own, and goes to JAX as a `Packed`. In results no leaf
has identity: a rule gets, or gives, a derivative for each place, as in JAX.
"""

import copy
import functools
import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any, Generic, cast

import jax
import jax.numpy as jnp

from pydag.jaxinterop.calls import pair_of, run_body
from pydag.jaxinterop.content.content import Content, take_apart
from pydag.jaxinterop.content.leaves import is_array_type
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.content.packed import (
    Packed,
    packed_of,
    packed_with,
    parts_of,
    unpack,
    without_refs,
)
from pydag.jaxinterop.content.selection import is_differentiable, zero_tangent
from pydag.jaxinterop.help import with_wrapper_options
from pydag.jaxinterop.naming import Source, name_of, named, wraps
from pydag.jaxinterop.refs import Refs
from pydag.jaxinterop.treatments.arguments import names_of, numbers_of
from pydag.jaxinterop.typed import P, R
from pydag.typing import Identity, Leaf

from .differentiated import as_type_error, tangents_of


class Custom(Generic[P, R]):
    """A function of DAGs with a derivative of its own."""

    _transformation: Any = None

    def __init__(
        self,
        fun: Callable[P, R],
        nondiff_argnums: Any = (),
        nondiff_argnames: Sequence[str] = (),
        *,
        namespace: str = "",
        identity: Identity = "all",
    ) -> None:
        wraps(fun)(self)
        self.fun, self.options = fun, Options(namespace, identity)
        is_opaque = isinstance(fun, functools.partial)  # to JAX
        self._signature = inspect.signature((lambda *_, **__: None) if is_opaque else fun)
        numbers, names = numbers_of(nondiff_argnums), names_of(nondiff_argnames)
        if unknown := set(names).difference(inspect.signature(fun).parameters if names else ()):
            raise ValueError(f"nondiff_argnames: {name_of(fun)} has no parameter {unknown.pop()!r}")
        # JAX counts, also what is negative.
        self.nondiff_argnums = self._transformation(fun, numbers, names).nondiff_argnums
        source = Source(fun)
        # What JAX owns must not own what owns JAX's function: no cycle.
        self.own = own = copy.copy(self)

        def flat(*args: Any) -> Any:
            return own.pack(own.called(fun, args, source), args)

        self._jax = self._transformation(named(flat, source), nondiff_argnums=self.nondiff_argnums)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        if by_name := bound.kwargs.keys() & kwargs:
            raise TypeError(
                f"{name_of(self.fun)} got keyword arguments, which can't be differentiated: "
                f"{', '.join(sorted(by_name))}\n  Make these parameters positional."
            )
        given = [
            x if i in self.nondiff_argnums else self.taken_apart(x, f"args[{i}]")
            for i, x in enumerate(bound.args)
        ]
        return cast(R, unpack(self._jax(*given), refs_of(given)))

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        """As in JAX: methods of the function that define rules (`def_vmap`); flags of its rules."""
        own = vars(self)
        if name.startswith("def") and hasattr(own.get("fun"), name):
            return getattr(self.fun, name)
        found = getattr(own.get("_jax"), name, None)
        if isinstance(found, bool):
            return found
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def taken_apart(self, tree: Any, root: str) -> Packed:
        """A tree, for JAX."""
        leaves, content = take_apart(tree, self.options, root, by_tuples=True)
        return packed_with(content, leaves)

    def called(self, fun: Callable[..., Any], args: Sequence[Any], source: Source) -> Any:
        """The result of a function of the user's for the arguments that JAX gave."""
        trees = tuple(map(built, args))
        return run_body(fun, trees, self.options, source, *map("args[{}]".format, range(len(args))))

    def result(self, tree: Any) -> tuple[Sequence[Leaf], Content]:
        """A result, taken apart: no leaf has identity."""
        options = self.options._replace(identity="nodes")
        return take_apart(tree, options, "result", is_result=True)

    def pack(self, tree: Any, args: Sequence[Any]) -> Any:
        """A result, for JAX. The refs of the arguments that come back are origins."""
        leaves, content = self.result(tree)
        return packed_of(content, *without_refs(leaves, refs_of(args).origins, False))


def built(argument: Any) -> Any:
    """A fresh tree of an argument; one that is handed on as it is."""
    if type(argument) is not Packed:
        return argument
    leaves, content, _ = parts_of(argument)
    return content.build(leaves)


def refs_of(args: Sequence[Any]) -> Refs:
    """The refs in the arguments, which JAX's rules take as they are."""
    return Refs([leaf for x in args if type(x) is Packed for leaf in parts_of(x)[0]])


@with_wrapper_options
class custom_jvp(Custom[P, R]):  # noqa: N801 (JAX's name)
    """A function of DAGs with a forward-mode rule; as `jax.custom_jvp`.

    There is one identity table for each argument, in which a tangent has the structure of its
    primal; None stands where there is no derivative. In results no leaf has identity.

    Args:
        fun: The function, of positional arguments; others keep their defaults.

    >>> @custom_jvp
    ... def f(p):
    ...     return p["a"] * p["b"]
    >>> @f.defjvp
    ... def rule(primals, tangents):
    ...     [p], [t] = primals, tangents
    ...     return f(p), p["a"] * t["b"] + p["b"] * t["a"]
    >>> w = jnp.float32(3.0)
    >>> float(pydag.jaxinterop.grad(f)({"a": w, "b": w})["a"])
    6.0
    """

    _transformation = staticmethod(jax.custom_jvp)
    jvp: Callable[..., Any] | None = None

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Any:
        """Sets the rule, and returns it.

        Args:
            jvp: `jvp(*nondiff_args, primals, tangents)` returns `(result, tangent)`.
            symbolic_zeros: As in JAX.
        """
        self.jvp, own = jvp, self.own

        def flat(*args: Any) -> Any:
            *others, primals, tangents = args
            trees = (tangents_of(x, leaves) for leaves, x, _ in map(parts_of, tangents))
            given = (*map(built, others), tuple(map(built, primals)), tuple(trees))
            result, tangent = pair_of(jvp(*given), name_of(jvp), "(primal, tangent)")
            leaves, content = own.result(result)
            start = f"{name_of(jvp)} must return primal and tangent outputs of equal structure\n"
            with as_type_error(start):
                found = list(content.match(tangent, "tangent"))
            for i, (x, t) in enumerate(zip(leaves, found, strict=True)):
                if not is_differentiable(x) or (t is None and not is_array_type(jax.typeof(x))):
                    found[i] = zero_tangent(jax.typeof(x))
                elif t is None:
                    found[i] = jnp.zeros_like(x)
            return own.pack(result, primals), packed_of(content, found, None)

        self._jax.defjvp(named(flat, Source(jvp)), symbolic_zeros=symbolic_zeros)
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Sets a rule for each argument.

        Args:
            jvps: `jvp(tangent, result, *primals)` returns the tangent of the result for that
                of one argument; None is zero.
        """
        if self.nondiff_argnums:
            raise TypeError("defjvps is for functions without nondiff_argnums: use defjvp")

        def jvp(primals: Any, tangents: Any) -> Any:
            fun: Any = self
            result = fun(*primals)
            leaves, content = self.result(result)
            rules = zip(jvps, tangents, strict=True)
            rows = [
                content.match(rule(tangent, result, *primals), "tangent")
                for rule, tangent in rules
                if rule is not None
            ]
            tangents = []
            for leaf, *column in zip(leaves, *rows, strict=True):
                found = [x for x in column if x is not None] if is_differentiable(leaf) else []
                tangents.append(sum(found[1:], found[0]) if found else None)
            return result, content.build(tangents)

        self.defjvp(jvp)
