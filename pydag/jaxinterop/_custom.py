# SPDX-License-Identifier: Apache-2.0
"""`jax.custom_jvp` and `jax.custom_vjp` for functions of DAGs.

Rules are written per argument: a rule for `f(x, y)` gives a cotangent for `x` and one for `y`. So
identity spans each argument and not all of them, and what `f(w, w)` makes of both is added up by
JAX, for which they are two inputs.
"""

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from pydag.typing import Identity

from ._call import named
from ._dag import Dag, fresh, like, packed, rebuilt
from ._form import Form, Options
from ._kept import name_of
from ._outputs import Shell
from ._treatment import shortened

R = TypeVar("R", bound=Callable[..., Any])


class _Custom:
    """What both have in common: the function of Dags, and how it is called."""

    _transformation: Callable[..., Any]

    def __init__(
        self,
        fun: Callable[..., Any],
        nondiff_argnums: Sequence[int] = (),
        nondiff_argnames: Sequence[str] = (),
        *,
        namespace: str = "",
        identity: Identity = "all",
    ) -> None:
        functools.update_wrapper(self, fun)
        self.fun = fun
        self._options = Options(namespace, identity)
        self._signature = inspect.signature(fun)
        names = list(self._signature.parameters)
        by_name = map(names.index, nondiff_argnames)
        self.nondiff_argnums = tuple(sorted({*nondiff_argnums, *by_name}))

        def flat(*args: Any) -> Dag:
            return self._pack(fun(*self._trees(args)))

        self._jax: Any = type(self)._transformation(
            named(flat, name_of(fun)), nondiff_argnums=self.nondiff_argnums
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(
                "a function with a derivative of its own has positional arguments alone; these "
                f"are given by keyword: {', '.join(bound.kwargs)}"
            )
        skipped = self.nondiff_argnums
        packed = (x if i in skipped else self._pack(x) for i, x in enumerate(bound.args))
        return self._jax(*packed).tree

    def _pack(self, tree: Any) -> Dag:
        return packed(tree, self._options)

    def _trees(self, args: Sequence[Any]) -> Iterator[Any]:
        """The function's arguments, as the user has them."""
        return (x if i in self.nondiff_argnums else fresh(x) for i, x in enumerate(args))


class custom_jvp(_Custom):  # noqa: N801 (JAX's name)
    """A function of DAGs with its own derivative, forward; as `jax.custom_jvp`.

    Identity spans each argument: an object in two arguments is two inputs, whose tangents JAX adds
    up. Inside of one argument, what is one object is one in the rule, and has one tangent.

    Args:
        nondiff_argnums, nondiff_argnames: Arguments that are handed on as they are.

    >>> @custom_jvp
    ... def f(p):
    ...     return p["a"] * p["b"]
    >>> @f.defjvp
    ... def f_jvp(primals, tangents):
    ...     (p,), (t,) = primals, tangents
    ...     return f(p), t["a"] * p["b"] + p["a"] * t["b"]
    >>> float(jax.grad(lambda w: f({"a": w, "b": w}))(jnp.float32(3.0)))
    6.0
    """

    _transformation = jax.custom_jvp

    def defjvp(self, jvp: R, symbolic_zeros: bool = False) -> R:
        """Set the rule: `jvp(*nondiff_args, primals, tangents)` to `(result, tangent)`.

        Also a decorator. The tangent is structured as the result is.
        """

        def flat_jvp(*args: Any) -> tuple[Dag, Dag]:
            *others, primals, tangents = args
            result, tangent = jvp(*others, tuple(map(fresh, primals)), tuple(map(fresh, tangents)))
            dag = self._pack(result)
            return dag, like(dag, tangent, f"the tangent that {name_of(jvp)} returned")

        self._jax.defjvp(named(flat_jvp, name_of(jvp)), symbolic_zeros=symbolic_zeros)
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set a rule for each argument: `jvp(tangent, result, *primals)` to a part of the tangent.

        None stands for zero. The parts are added up.
        """
        if self.nondiff_argnums:
            raise TypeError("defjvps and nondiff_argnums don't go together; use defjvp")

        def rule(primals: Any, tangents: Any) -> tuple[Any, Any]:
            result = self(*primals)
            dag = self._pack(result)
            parts = [
                like(dag, jvp(tangent, result, *primals), f"what {name_of(jvp)} returned")
                for jvp, tangent in zip(jvps, tangents, strict=True)
                if jvp is not None
            ]
            zeros = jax.tree.map(jnp.zeros_like, dag)
            return result, jax.tree.map(
                lambda *leaves: sum(leaves[1:], leaves[0]), zeros, *parts
            ).tree

        self.defjvp(rule)


class custom_vjp(_Custom):  # noqa: N801 (JAX's name)
    """A function of DAGs with its own derivative, backward; as `jax.custom_vjp`.

    Identity spans each argument: an object in two arguments is two inputs, whose cotangents JAX
    adds up. Inside of one argument, what is one object is one in the rules, and has one cotangent:
    the sum over its uses there.

    Args:
        nondiff_argnums, nondiff_argnames: Arguments that are handed on as they are.

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

    _transformation = jax.custom_vjp

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
        **jax_options: Any,
    ) -> None:
        """Set the rules.

        `fwd(*args)` returns `(result, saved)`, `bwd(*nondiff_args, saved, cotangent)` a tuple with
        a cotangent for each differentiable argument.

        Each cotangent is structured as its argument is, and shares at least as much; anything may
        stand for leaves that JAX can't trace. None stands for zero.

        Raises:
            SharingError: When differentiated: a cotangent has two objects where there was one.
        """

        def flat_fwd(*args: Any) -> tuple[Dag, tuple[Dag, Shell]]:
            result, saved = fwd(*self._trees(args))
            forms = (x._form for i, x in enumerate(args) if i not in self.nondiff_argnums)
            return self._pack(result), (self._pack(saved), Shell(tuple(forms)))

        def flat_bwd(*args: Any) -> tuple[Dag | None, ...]:
            *others, (saved, forms), cotangent = args
            found = bwd(*others, fresh(saved), fresh(cotangent))
            count = len(forms.content)
            if not isinstance(found, tuple) or len(found) != count:
                raise TypeError(
                    f"{name_of(bwd)} must return a tuple with a cotangent for each of {count} "
                    f"differentiable arguments, but it returned {shortened(repr(found))}"
                )
            return tuple(map(self._cotangent, range(count), forms.content, found))

        self._jax.defvjp(
            named(flat_fwd, name_of(fwd)),
            named(flat_bwd, name_of(bwd)),
            symbolic_zeros=symbolic_zeros,
            optimize_remat=optimize_remat,
            **jax_options,
        )

    def _cotangent(self, i: int, form: Form, found: Any) -> Dag | None:
        if found is None:
            return None
        what = f"the cotangent for differentiable argument {i} of {name_of(self.fun)}"
        return rebuilt(form, form.match(found, what))
