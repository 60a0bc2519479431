# SPDX-License-Identifier: Apache-2.0
"""Which leaves JAX traces.

*Traced*: what `jax.jit` takes for an array, numbers included. *Static*: all other leaves; and the
numbers and flags that a module holds, which are its configuration: those whose nearest registered
owner, looked for upwards through builtin containers, is a module.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.hijax import AbstractRef

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.errors import SharingError
from pydag.jaxinterop.foreign import jax_private
from pydag.registry.class_table import ClassTable, bases_of, inherits, names_in
from pydag.registry.weak_table import WeakTable
from pydag.structure.listing import Listing
from pydag.typing import Leaf

from .paths import Roots, way_text

_NUMBERS = (bool, int, float, complex, np.bool_, np.number)
# Ids: to hash a dtype takes long, and of these there is one each.
_dtypes = frozenset(
    id(np.dtype(name)) for name in ("float32", "float64", "int32", "int64", "uint8", "bool")
)


def _ask_jax(leaf: Any) -> bool:
    try:
        jax.typeof(leaf)
    except TypeError:
        return False
    except Exception:
        return True  # JAX raises an error of its own about such leaves
    return True


# JAX takes every instance of these, or of none of the classes below them, for an array.
_DECIDED_BY_CLASS = (*_NUMBERS, str, bytes, np.generic)


def _ask_of_class(leaf: Any) -> bool | None:
    cls = type(leaf)
    known = set(map(id, jax_private.array_classes))
    if not any(id(base) in known for base in bases_of(cls)):
        return False
    module = names_in(cls).get("__module__")
    is_of_jax = type(module) is str and module.partition(".")[0] in ("jax", "jaxlib")
    decides = is_of_jax or any(inherits(cls, base) for base in _DECIDED_BY_CLASS)
    return _ask_jax(leaf) if decides else None


_is_class_traced = ClassTable(_ask_of_class).of  # None: each instance has to be asked

is_number = ClassTable(lambda leaf: any(inherits(type(leaf), base) for base in _NUMBERS)).of
"""Whether a leaf is a number or a flag of Python's, or a scalar of NumPy's."""


is_array_by_method = ClassTable(
    lambda x: any("__jax_array__" in names_in(base) for base in bases_of(type(x)))
).of
"""Whether a class only says how to make an array of an instance, which JAX doesn't trace."""


def is_traced(leaf: Any) -> bool:
    """Whether JAX takes a leaf for an array."""
    if type(leaf) is np.ndarray:
        return id(leaf.dtype) in _dtypes or _ask_jax(leaf)
    known = _is_class_traced(leaf)
    return _ask_jax(leaf) if known is None else known


def is_array(leaf: Any) -> bool:
    """Whether a leaf is an array of JAX's or NumPy's, a tracer, or a ref."""
    return isinstance(leaf, jax.Array | np.ndarray | jax.core.Tracer) or jax_private.is_ref(leaf)


def copied(array: Any) -> Any:
    """Another object for the same array: of the same type, weak or not."""
    if isinstance(array, np.ndarray):
        return array.view()
    copy = jnp.copy(array)
    if getattr(array, "weak_type", False):
        copy = jax_private.convert_element_type(copy, copy.dtype, weak_type=True)
    return copy


def is_array_type(type_: Any) -> bool:
    """Whether a type of JAX's is that of arrays or refs, which have a shape and a dtype."""
    return isinstance(type_, jax.core.ShapedArray | AbstractRef)


def is_like_array(leaf: Any) -> bool:
    """Whether a leaf that JAX traces is of such a type, or a number."""
    if isinstance(leaf, jax_private.ArrayImpl | np.ndarray) or is_number(leaf):
        return True  # asked first: to make a type takes long
    return is_array_type(jax.typeof(leaf))


def _tangent_dtype(type_: Any) -> Any:
    """The dtype that says whether there is a derivative; None: there is one."""
    if is_array_type(type_):
        return type_.dtype
    try:
        return getattr(type_.to_tangent_aval(), "dtype", None)
    except Exception:  # it has no tangents
        return jax.dtypes.float0


def is_differentiable(leaf: Any, allow_int: bool = False) -> bool:
    """Whether JAX differentiates by an array, a number or another leaf of this type."""
    if type(leaf) is jax_private.ArrayImpl or isinstance(leaf, np.ndarray):
        dtype: Any = leaf.dtype  # type: ignore[attr-defined]  # narrowed to a bare class
    elif is_number(leaf):
        return isinstance(leaf, float | complex | np.inexact) or allow_int
    elif jax_private.is_ref(leaf):
        return False
    else:
        dtype = _tangent_dtype(jax.typeof(leaf))
    if dtype is None or jnp.issubdtype(dtype, np.inexact):
        return True
    is_integer = dtype != jax.dtypes.float0 and not jnp.issubdtype(dtype, jax.dtypes.extended)
    return allow_int and is_integer


def untraced(leaves: Sequence[Leaf]) -> Sequence[int]:
    """The positions of the leaves that JAX doesn't take for arrays, mostly found by class."""
    examples = _core.one_of_each_class(leaves)
    answers = {key: _is_class_traced(example) for key, example in examples.items()}
    if id(np.ndarray) in answers:
        arrays = leaves if len(answers) == 1 else [x for x in leaves if type(x) is np.ndarray]
        answers[id(np.ndarray)] = _have_known_dtypes(arrays) or None
    if None in answers.values():
        return [i for i, leaf in enumerate(leaves) if not is_traced(leaf)]
    wrong = [cls for cls, is_known in answers.items() if not is_known]
    return _core.positions_of_classes(leaves, wrong) if wrong else ()


def _have_known_dtypes(arrays: Sequence[Any]) -> bool:
    dtypes = [array.dtype for array in arrays]
    if dtypes.count(dtypes[0]) == len(dtypes):  # mostly; to count is faster than to take each id
        dtypes = dtypes[:1]
    return _dtypes.issuperset(map(id, dtypes))


def static_positions(
    leaves: Sequence[Leaf], spec: PyDagSpec, roots: Roots, selected: Sequence[int] = ()
) -> tuple[int, ...]:
    """The positions of the static leaves of a tree.

    Args:
        roots: What errors call the tree.
        selected: The positions that `static=` selects.

    Raises:
        SharingError: A number is a module's by one path, and data by another.
    """
    numbers: Sequence[int] = ()
    examples = _core.one_of_each_class(leaves)
    classes = [cls for cls, example in examples.items() if is_number(example)]
    if classes:
        numbers = _numbers_of_modules(_core.positions_of_classes(leaves, classes), spec, roots)
    others = untraced(leaves)
    if sum(map(bool, (numbers, selected, others))) > 1:
        return tuple(sorted({*numbers, *selected, *others}))
    return tuple(others or numbers or selected)


# Of a structure that lives: which leaves modules own, and which they own by one path of several.
_owned: WeakTable[tuple[frozenset[int], ...]] = WeakTable()


def _numbers_of_modules(numbers: list[int], spec: PyDagSpec, roots: Roots) -> list[int]:
    """The positions, among those of numbers, where a module owns the number."""
    known = _owned.get(spec, None)
    if known is None:
        known = tuple(map(frozenset, _core.module_leaves(spec)))
        _owned.set(spec, known)
    owned, mixed = known
    for i in sorted(mixed.intersection(numbers)) if mixed else ():
        raise _two_owners(spec, i, roots)
    return numbers if len(owned) == spec.num_leaves else [i for i in numbers if i in owned]


def _two_owners(spec: PyDagSpec, leaf: int, roots: Roots) -> SharingError:
    listing = Listing.of(spec)
    found: dict[bool, str] = {}
    for way, _ in zip(listing.ways(listing.leaves[leaf]), range(256), strict=False):
        owners = [listing.records[listing.target(step)] for step in way]
        registered = [o.type for o in owners if o.kind in ("fields", "custom type")]
        is_owned = bool(registered) and _core.is_module(registered[-1], spec.namespace)
        found.setdefault(is_owned, way_text(listing, way, roots))
    return SharingError(
        "one number is both a module's configuration and data\n"
        f"  {found.get(True, 'along one path')} is static: a module holds it\n"
        f"  {found.get(False, 'along another')} is traced: no module holds it there\n"
        "  The container that holds it is one object at both places: give one of them a copy."
    )
