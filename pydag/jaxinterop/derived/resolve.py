# SPDX-License-Identifier: Apache-2.0
"""Resolving derived leaves: in a tree, in the arguments of a function, in a method's `self`."""

import functools
import inspect
import operator
import sys
from collections.abc import Callable
from typing import Any

import pydag._core as _core
from pydag.jaxinterop.content.content import PLAIN
from pydag.jaxinterop.content.dag import Dag
from pydag.jaxinterop.foreign.jax_private import read
from pydag.jaxinterop.help import with_wrapper_options
from pydag.jaxinterop.typed import P, R, T
from pydag.jaxinterop.updates.changes import Changes, Given
from pydag.registry.tables import WeakTable
from pydag.structure.text import short_repr

from .derived import Derived


def _value(derived: Derived) -> Any:
    try:
        value = derived.f(*map(read, derived.sources), **dict(derived._kwargs))
    except Exception as error:
        error.add_note(f"  while a derived leaf was computed: {derived!r}")
        raise
    return resolved(value) if type(value) is Derived else value


@with_wrapper_options
def resolved(tree: T, *, namespace: str = "") -> T:
    """The tree with each derived leaf replaced by its value.

    Innermost ones come first. Each is computed once, and its one value stands wherever it stood, so
    what is computed is shared, too. Objects without derived leaves are returned as they are;
    the others are new ones, so what is changed in them isn't changed in the model. In a transformed
    function it is traced with the rest.

    Where paramax is imported, its `AbstractUnwrappable`s are unwrapped as well.

    Args:
        tree: The DAG, or a `Dag` of one.

    >>> w = jnp.ones((4, 3))
    >>> model = {"embed": w, "out": Derived(jnp.transpose, w)}
    >>> plain = resolved(model)
    >>> plain["out"].shape, plain["embed"] is w
    ((3, 4), True)
    """
    found: Any = tree
    if isinstance(tree, Dag):
        own = resolved(tree.tree, namespace=tree._options.namespace)
        found = tree if own is tree.tree else Dag(own, **tree._options._asdict())
    else:
        rules: dict[type, Callable[[Any], Any]] = {Derived: _value}
        base = getattr(sys.modules.get("paramax"), "AbstractUnwrappable", None)
        if isinstance(base, type):
            rules[base] = operator.methodcaller("unwrap")
        found = _core.rewrite(rules, tree, namespace=namespace)
    return found  # type: ignore[no-any-return]  # it is of the class of `tree`


def resolve_arguments(f: Callable[P, R]) -> Callable[P, R]:
    """A function that calls `f` with its arguments resolved. Also a decorator, also of a method.

    An object that leads to a derived leaf is a copy inside of `f`, which must not be changed;
    others are the caller's. Where `f` returns a copy, the caller's object is returned.

    Args:
        f: The function, such as a loss.

    Raises:
        TypeError: `f` is a generator or a coroutine; when called: it changed a copy.

    >>> w = jnp.ones((4, 3))
    >>> model = {"embed": w, "out": Derived(jnp.transpose, w)}
    >>> @resolve_arguments
    ... def loss(model):
    ...     return (model["embed"] @ model["out"]).sum()
    >>> gradient = pydag.jaxinterop.grad(loss)(model)
    >>> gradient["out"].sources[0] is gradient["embed"], float(gradient["embed"][0, 0])
    (True, 8.0)
    """
    _check_runs_at_once(f)

    @functools.wraps(f)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        given = args, kwargs
        return _call_resolved(lambda args, kwargs: f(*args, **kwargs), given, ("args", "kwargs"))

    return call


def _check_runs_at_once(f: Callable[..., Any]) -> None:
    tests = inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction
    if any(test(f) for test in tests):
        raise TypeError(
            f"{short_repr(f)} is a generator or a coroutine, which runs when its arguments are no "
            "longer resolved\n  Write model = pj.resolved(model) inside of it."
        )


def resolve_self(method: Callable[..., R]) -> Callable[..., R]:
    """A method that is called with `self` resolved, as `resolve_arguments` does it."""
    _check_runs_at_once(method)

    @functools.wraps(method)
    def call(self: Any, /, *args: Any, **kwargs: Any) -> R:
        return _call_resolved(lambda own: method(own, *args, **kwargs), (self,), ("self",))

    _resolving.set(call, True)
    return call


_resolving: WeakTable[bool] = WeakTable()


def resolve_methods(cls: type) -> None:
    """Lets the public methods of a class, `__call__` among them, resolve `self`.

    They are the callable attributes that have no underscore in front, and are bound to instances:
    inherited ones, too, but not class methods, static methods and properties.
    """
    for base in reversed(cls.__mro__[:-1]):
        for name, found in list(vars(base).items()):
            is_public = not name.startswith("_") or name == "__call__"
            is_bound = callable(found) and hasattr(type(found), "__get__")
            is_method = is_bound and not isinstance(found, staticmethod | classmethod | type)
            is_own = inspect.getattr_static(cls, name) is found
            if is_public and is_own and is_method and not _resolving.get(found, False):
                setattr(cls, name, resolve_self(found))


def _call_resolved(f: Callable[..., R], given: tuple[Any, ...], roots: tuple[str, ...]) -> R:
    """Call a function with resolved copies of its arguments, and return originals for copies."""
    own = resolved(given)
    if own is given:
        return f(*given)
    before = Given.of(own, PLAIN, roots)
    originals: dict[int, tuple[Any, Any]] = {}  # with their copies, by the ids of these
    pending: list[tuple[Any, Any]] = [(given, own)]
    while pending:
        a, b = pending.pop()
        is_other = a is b or type(a) is not type(b) or id(b) in originals
        if is_other or _core.is_leaf(a) or type(a) is Derived:
            continue
        if not isinstance(a, tuple):
            originals[id(b)] = a, b
        pending += zip(_core.open_one_level(a)[0], _core.open_one_level(b)[0], strict=False)
    result = f(*own)
    changes = Changes(before)
    for change in changes.others:
        holders = reversed(changes.holders(change.place)[0])
        if id(next((h for h in holders if not isinstance(h, tuple)), None)) in originals:
            raise TypeError(
                f"{changes.text(change.place)} was changed in a resolved copy, and the change "
                "would be lost\n  Resolve inside of the function, where the derived leaves "
                "are used: pj.resolved(model); or change the model itself, outside."
            )
    found: R = _core.rewrite(
        lambda node: originals.get(id(node), (node,))[0],
        result,
        is_leaf=lambda node: id(node) in originals,
    )
    return found
