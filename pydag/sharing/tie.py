# SPDX-License-Identifier: Apache-2.0
"""Changes sharing: ties parts, unties them, and restores lost ties.

A path is a tuple of entries, as `dag_paths` gives them, or an accessor, as `dag_accessors` does.
"""

import threading
from collections.abc import Callable
from typing import TypeVar, Unpack

import optree

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.public.options import with_options
from pydag.sharing.paths import suggests_paths
from pydag.sharing.refs import copy_of_leaf
from pydag.structure.text import short_repr
from pydag.typing import Dag, FlattenOptions, Leaf, Path

T = TypeVar("T")

PathLike = Path | optree.PyTreeAccessor


def _path(path: PathLike) -> Path:
    return tuple(path.path) if isinstance(path, optree.PyTreeAccessor) else path


class _Calls(threading.local):
    count = 0


_calls = _Calls()


def num_unties() -> int:
    """How often this thread has untied something: such ties were cut on purpose."""
    return _calls.count


def note_untie() -> None:
    """Count a call of `untie`, or of another function that separates objects on purpose."""
    _calls.count += 1


@with_options
@suggests_paths
def tie(
    tree: T,
    path: PathLike,
    *paths: PathLike,
    **options: Unpack[FlattenOptions],
) -> T:
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
def untie(
    tree: T,
    *paths: PathLike,
    **options: Unpack[FlattenOptions],
) -> T:
    """A new tree in which each of the paths leads to its own copy of the part there.

    A container is copied with everything below it; leaves are copied by `copy.copy`, and a ref of
    JAX by a new ref with the same content. If the paths name all slots of an object, the first of
    them keeps the object. Without paths everything is untied: no object, and no leaf, stays at two
    places. The argument is unchanged.

    Args:
        paths: A path that leads through a shared object names a slot within it, so the change shows
            at all of its paths.

    Raises:
        ValueError: A path doesn't exist; nothing at the paths, or below them, is shared; or the
            tree without sharing would be too large.

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
    dtype, shape = getattr(a, "dtype", None), getattr(a, "shape", None)
    if dtype is None or shape is None:
        return type(a) is type(b) and type(a) in _PLAIN and (a == b or (a != a and b != b))
    if (dtype, shape) != (getattr(b, "dtype", None), getattr(b, "shape", None)):
        return False
    if not (hasattr(a, "__array__") and hasattr(b, "__array__")):
        return False
    import numpy as np  # here: code with such leaves has NumPy

    try:
        return bool(np.asarray(a).tobytes() == np.asarray(b).tobytes())
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
    if combine is not None and not callable(combine):
        raise TypeError(f"combine must be a function of two leaves or None, got {combine!r}")
    return _core.retie(spec, tree, _are_equal, combine)
