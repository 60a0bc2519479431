# SPDX-License-Identifier: Apache-2.0
"""Resolving derived leaves: in a tree, in the arguments of a function, in a method's `self`."""

import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ParamSpec, TypeVar

import pydag._core as _core
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.messages.at_call import warn_at_call
from pydag.jaxinterop.notices.lost_tie import LostTieWarning
from pydag.jaxinterop.options import with_wrapper_options
from pydag.jaxinterop.packed.dag import Dag
from pydag.registry.weak_table import WeakTable
from pydag.sharing.refs import is_ref

from .derived import Derived

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")


def _value(derived: Derived) -> Any:
    sources = derived.sources
    for source in sources:
        if type(source) is not jax_private.array_class and is_ref(source):
            sources = tuple(x[...] if is_ref(x) else x for x in sources)
            break
    try:
        value = derived.f(*sources, **dict(derived._kwargs))
    except Exception as error:
        error.add_note(f"  while a derived leaf was computed: {derived!r}")
        raise
    return resolved(value) if type(value) is Derived else value


def _unwrapped(node: Any) -> Any:
    return node.unwrap()


Rules = dict[type, Callable[[Any], Any]]

_OURS: Rules = {Derived: _value}


def _rules() -> Rules:
    """What each class of nodes is replaced by."""
    base = getattr(sys.modules.get("paramax"), "AbstractUnwrappable", None)
    return {**_OURS, base: _unwrapped} if isinstance(base, type) else _OURS


@with_wrapper_options
def resolved(tree: T, *, namespace: str = "") -> T:
    """The tree with each derived leaf replaced by its value.

    Innermost ones come first. Each is computed once, and its one value stands wherever it stood, so
    what is computed is shared, too. An object that leads to no derived leaf stays the very object;
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
    found: T
    if isinstance(tree, Dag):
        found = _resolved_dag(tree)
    else:
        found = _core.rewrite(_rules(), tree, namespace=namespace)
    return found


def _resolved_dag(dag: Any) -> Any:
    options = dag._untraced.options
    tree = resolved(dag.tree, namespace=options.namespace)
    if tree is dag.tree:
        return dag
    return Dag(tree, namespace=options.namespace, identity=options.identity, static=options.static)


def resolve_arguments(f: Callable[P, R]) -> Callable[P, R]:
    """A function that calls `f` with its arguments resolved. Also a decorator, also of a method.

    What `f` changes in an object of its arguments is changed in the caller's object, and where `f`
    returns one of them, the caller's is returned, with its derived leaves as they are.

    Args:
        f: The function, such as a loss.

    Warns:
        LostTieWarning: `f` returns a module that was made of a resolved one, such as one that was
            updated: its derived leaves are plain arrays.

    >>> w = jnp.ones((4, 3))
    >>> model = {"embed": w, "out": Derived(jnp.transpose, w)}
    >>> @resolve_arguments
    ... def loss(model):
    ...     return (model["embed"] @ model["out"]).sum()
    >>> gradient = pydag.jaxinterop.grad(loss)(model)
    >>> gradient["out"].sources[0] is gradient["embed"], float(gradient["embed"][0, 0])
    (True, 8.0)
    """

    @functools.wraps(f)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        given = args, kwargs
        own = resolved(given)
        if own is given:
            return f(*args, **kwargs)
        return _with_copies(given, own, lambda: f(*own[0], **own[1]))

    return call


def _with_copies(given: Any, own: Any, call: Callable[[], R]) -> R:
    copies = Copies(given, own)
    result = call()
    copies.hand_on()
    found: R = copies.originals_in(result)
    _warn_if_tie_is_lost(found, copies)
    return found


def _warn_if_tie_is_lost(result: Any, copies: "Copies") -> None:
    """Warns about a module in a result that was made of a resolved one: its ties are gone."""
    for part in result if isinstance(result, tuple | list) else (result,):
        for original, copy in copies.modules_of(type(part)):
            if part is not original and _core.structure(part) == _core.structure(copy):
                leaves, spec = _core.flatten(original, is_leaf=lambda x: type(x) is Derived)
                paths = [a.codify("") for a in spec.accessors()]
                lost = next(
                    (p for p, x in zip(paths, leaves, strict=True) if type(x) is Derived), ""
                )
                warn_at_call(
                    f"a {type(part).__name__} that was made of a resolved one is returned: its "
                    f"derived leaves, such as {lost}, are plain arrays, and no longer tied\n"
                    "  Resolve inside of the loss, not around the step: a function that returns a "
                    "changed model should get the model as it is. If values are wanted, take "
                    "pj.resolved(model).",
                    LostTieWarning,
                )
                return


def resolve_self(method: Callable[..., R]) -> Callable[..., R]:
    """A method that is called with `self` resolved, as `resolve_arguments` does it."""

    @functools.wraps(method)
    def call(self: Any, /, *args: Any, **kwargs: Any) -> R:
        own = resolved(self)
        if own is self:
            return method(self, *args, **kwargs)
        return _with_copies(self, own, lambda: method(own, *args, **kwargs))

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
            if is_public and inspect.getattr_static(cls, name) is found and _is_method(found):
                setattr(cls, name, resolve_self(found))


def _is_method(found: Any) -> bool:
    is_bound = callable(found) and hasattr(type(found), "__get__")
    is_other = isinstance(found, staticmethod | classmethod | type)
    return is_bound and not is_other and not _resolving.get(found, False)


_MISSING = object()


class Copies:
    """What a function is given in the place of the caller's objects.

    Args:
        original: The caller's tree.
        copy: The same tree, resolved.
    """

    def __init__(self, original: Any, copy: Any) -> None:
        # Of each copy that can be changed: the original, and what the copy held.
        self._pairs: list[tuple[Any, Any, dict[Any, Any]]] = []
        self._originals: dict[int, Any] = {}
        pending = [(original, copy)]
        while pending:
            a, b = pending.pop()
            if a is b or type(a) is not type(b) or id(b) in self._originals:
                continue
            held = _held(b)
            if held is not None:
                self._pairs.append((a, b, held))
                self._originals[id(b)] = a
                before = _held(a) or {}
                pending += [(before.get(key), value) for key, value in held.items()]
            elif isinstance(a, tuple):
                pending += zip(a, b, strict=False)

    def hand_on(self) -> None:
        """Changes in the originals what was changed in the copies."""
        for original, copy, before in self._pairs:
            now = _held(copy) or {}
            changed = {k: v for k, v in now.items() if before.get(k, _MISSING) is not v}
            if changed or len(now) != len(before):
                _write(original, {k: self.originals_in(v) for k, v in changed.items()})
                _drop(original, [k for k in before if k not in now])

    def modules_of(self, cls: type) -> list[tuple[Any, Any]]:
        """The originals of a class with their copies, but for dicts and lists."""
        if issubclass(cls, dict | list):
            return []
        return [(a, b) for a, b, _ in self._pairs if type(a) is cls]

    def originals_in(self, tree: Any) -> Any:
        """A tree with the original wherever a copy stands."""
        known = self._originals
        if not known:
            return tree
        is_leaf = lambda node: id(node) in known  # noqa: E731 (a name for what the core calls)
        return _core.rewrite(lambda node: known.get(id(node), node), tree, is_leaf=is_leaf)


def _held(node: Any) -> dict[Any, Any] | None:
    """What an object holds that can be changed, by name, key or index; None if nothing can."""
    if isinstance(node, dict):
        return dict(node)
    if isinstance(node, list):
        return dict(enumerate(node))
    if isinstance(node, tuple):
        return None
    slots = {name: getattr(node, name) for name in _slots(type(node)) if hasattr(node, name)}
    return {**slots, **getattr(node, "__dict__", {})} or None


def _slots(cls: type) -> Iterator[str]:
    for base in cls.__mro__:
        yield from (name for name in _core.own_slots(base) if not name.startswith("__"))


def _write(node: Any, changed: dict[Any, Any]) -> None:
    for key, value in changed.items():
        if isinstance(node, dict):
            node[key] = value
        elif isinstance(node, list):
            node[key : key + 1] = [value]  # the next one where there is none yet
        else:
            setattr(node, key, value)


def _drop(node: Any, keys: Sequence[Any]) -> None:
    for key in reversed(keys):
        if isinstance(node, dict | list):
            del node[key]
        else:
            delattr(node, key)
