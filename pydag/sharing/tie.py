# SPDX-License-Identifier: Apache-2.0
"""Changes sharing: ties parts, unties them, and restores lost ties.

A path is a tuple of entries, as `dag_paths` gives them, or an accessor, as `dag_accessors` does.
"""

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar, Unpack

import optree

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.arrays.bytes import same_bytes
from pydag.arrays.kinds import looks_like_array
from pydag.public.options import with_options
from pydag.sharing.refs import copy_of_leaf
from pydag.structure.listing import Listing
from pydag.structure.near import Near
from pydag.structure.text import short_repr
from pydag.typing import Dag, FlattenOptions, Leaf, Path

F = TypeVar("F", bound=Callable[..., Any])


def suggests_paths(function: F) -> F:
    """Lets the errors about paths of a function of a tree and of paths say which path is meant."""

    @functools.wraps(function)
    def checked(tree: Dag, *paths: Any, **options: Any) -> Any:
        _refuse_others(tree, paths, options)
        try:
            return function(tree, *paths, **options)
        except ValueError as error:
            _suggest(error, tree, paths, options)
            raise

    return checked  # type: ignore[return-value]  # it takes and returns the same


# Not within `checked`: without memory, CPython 3.11 never leaves the handler of a long function.
def _refuse_others(tree: Dag, paths: tuple[Any, ...], options: dict[str, Any]) -> None:
    for path in paths:
        if type(path) is not tuple and not isinstance(path, optree.PyTreeAccessor):
            raise TypeError(
                f"a path is a tuple of entries or an accessor, got {short_repr(path)}"
                f"{_instead(path, _near(tree, options))}"
            )


def _suggest(error: ValueError, tree: Dag, paths: tuple[Any, ...], options: dict[str, Any]) -> None:
    for path in paths:
        if f"nothing at the path {short_repr(path)}\n" in str(error):
            found = _near(tree, options).path(_text(path))
            if found is not None:
                error.args = (f"{error}\n  Did you mean {short_repr(found)}?",)


def _near(tree: Dag, options: dict[str, Any]) -> Near:
    return Near(Listing.of(_core.structure(tree, **options)))


def _text(entries: Any) -> str:
    return "/".join(map(str, entries))  # also of the keys of JAX


def _instead(path: object, near: Near) -> str:
    items = list(path) if isinstance(path, list | set | dict) else []
    if items and all(isinstance(item, tuple | list | optree.PyTreeAccessor) for item in items):
        return "\n  Give each path as an argument of its own: (tree, *paths)."
    found = near.path(_text(items) if items else str(path))
    if found is not None:
        one = " for one entry" if len(found) == 1 and not items else ""
        return f"\n  Write {short_repr(found)}{one}."
    each = [near.path(str(item)) for item in items]
    if items and None not in each:
        return f"\n  Give each path as an argument of its own: {', '.join(map(short_repr, each))}."
    there = near.paths()
    return f"\n  Write a tuple, such as {' or '.join(map(short_repr, there))}." if there else ""


T = TypeVar("T")

PathLike = Path | optree.PyTreeAccessor


def _path(path: PathLike) -> Path:
    return tuple(path.path) if isinstance(path, optree.PyTreeAccessor) else path


class _Unties(threading.local):
    count = 0


_calls = _Unties()


def num_unties() -> int:
    """How often this thread has untied something: such ties were cut on purpose."""
    return _calls.count


def note_untie() -> None:
    """Count a call of `untie`, or of another function that separates objects on purpose."""
    _calls.count += 1


@with_options
@suggests_paths
def tie(tree: T, path: PathLike, *paths: PathLike, **options: Unpack[FlattenOptions]) -> T:
    """A new tree with the part at `path` also at all the other paths.

    The argument is unchanged; the leaves are the same objects. A path that leads through a shared
    object names a slot within that object, so the change shows at all of its paths.

    Args:
        path: The path to the part that is kept.
        paths: The paths to the parts that it replaces. They must have the same structure; their
            sharing may differ.

    Raises:
        ValueError: There is only one path, or a path doesn't exist; the parts have different
            structures, or arrays in them have different shapes.
        CycleError: An object would contain itself.

    >>> model = tie({"embed": [1.0], "unembed": [2.0]}, ("embed",), ("unembed",))
    >>> model, model["embed"] is model["unembed"]
    ({'embed': [1.0], 'unembed': [1.0]}, True)
    """
    where = tuple(map(_path, (path, *paths)))
    if not paths:
        raise ValueError(
            f"tie needs two paths or more, got {short_repr(where[0])} alone\n"
            "  Write: tie(tree, path, other)."
        )
    result: T = _core.tie(tree, where, **options)
    return result


@with_options
@suggests_paths
def untie(tree: T, *paths: PathLike, **options: Unpack[FlattenOptions]) -> T:
    """A new tree in which each of the paths leads to its own copy of the part there.

    A container is copied with everything below it; leaves are copied by `copy.copy`, and a ref of
    JAX by a new ref with the same content. If the paths name all slots of an object, the first of
    them keeps the object. Without paths everything is untied: no object, and no leaf, stays at two
    places. The argument is unchanged.

    Args:
        paths: A path that leads through a shared object names a slot within it, so the change shows
            at all of its paths, and in copies that other paths make of it.

    Raises:
        ValueError: A path doesn't exist; nothing at the paths, or below them, is shared; or the
            tree without sharing would be too large, or the copies too many.

    >>> layer = [1.0]
    >>> model = untie({"encoder": layer, "decoder": layer}, ("encoder",))
    >>> model["encoder"] is model["decoder"]
    False
    >>> free = untie({"a": layer, "b": [layer]})
    >>> free["a"] is free["b"][0]
    False
    """
    where = tuple(map(_path, paths))
    result: T = _core.untie(tree, where, copy_of_leaf, **options)
    note_untie()
    return result


def _are_equal(a: Leaf, b: Leaf) -> bool:
    """Whether two copies of a leaf are equal: dtype, shape, bytes; of numbers, type, value."""
    if not looks_like_array(a):
        return type(a) is type(b) and type(a) in _PLAIN and (a == b or (a != a and b != b))
    if not (looks_like_array(b) and hasattr(a, "__array__") and hasattr(b, "__array__")):
        return False
    try:
        return bool(a.dtype == b.dtype) and same_bytes(a, b)
    except Exception:  # a tracer: its value isn't known
        return False


_PLAIN = frozenset({bool, int, float, complex, str, bytes})


def retie(spec: PyDagSpec, tree: Dag, combine: Callable[[Leaf, Leaf], Leaf] | None = None) -> Dag:
    """A tree that lost its sharing, with the sharing of `spec`.

    Code that ignores sharing returns such trees: they have copies where `spec` has one object. The
    copies become one object again.

    Args:
        spec: A structure with sharing.
        tree: A tree with the structure of `spec`, unfolded or partly shared.
        combine: A function of two leaves, such as `jnp.add` for gradients: it folds the distinct
            copies of a leaf, also equal copies, in the order of the paths. An object that appears
            twice counts once. Left out, copies must be equal: arrays in dtype, shape and bytes.

    Raises:
        SharingError: Copies differ, and there is no `combine`.
        ValueError: The tree has another structure.

    >>> w = [1.0]
    >>> spec = pydag.dag_structure({"a": w, "b": w})
    >>> tied = retie(spec, {"a": [1.0], "b": [1.0]})
    >>> tied["a"] is tied["b"]
    True
    >>> retie(pydag.dag_structure([int, w, w]), [int, [0.5], [0.25]], lambda a, b: a + b)
    [<class 'int'>, [0.75], [0.75]]
    """
    if isinstance(tree, PyDagSpec) and not isinstance(spec, PyDagSpec):
        raise TypeError("retie takes the spec before the tree\n  Swap them: retie(spec, tree).")
    if combine is not None and not callable(combine):
        raise TypeError(f"combine must be a function of two leaves or None, got {combine!r}")
    return _core.retie(spec, tree, _are_equal, combine)
