# SPDX-License-Identifier: Apache-2.0
"""Which leaves JAX can trace, and what a static leaf is: a part of a compiled function's key."""

import dataclasses
import enum
import functools
import types
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pydag._core as _core
from pydag.jaxinterop.foreign import jax_private
from pydag.registry.class_table import (
    ChangingClassTable,
    ClassTable,
    bases_of,
    inherits,
    names_in,
)
from pydag.registry.names import class_name
from pydag.structure.text import bounded_repr

# The commonest of the dtypes that JAX takes.
_dtypes = frozenset(map(np.dtype, ("float32", "float64", "int32", "int64", "uint8", "bool")))


def is_known_to_jax(cls: type) -> bool:
    """Whether JAX may take instances of a class for arrays."""
    known = set(map(id, jax_private.array_classes))
    return any(id(base) in known for base in bases_of(cls))


def _is_of_jax(leaf: Any) -> bool:
    module = names_in(type(leaf)).get("__module__")
    return type(module) is str and module.split(".")[0] in ("jax", "jaxlib")


is_of_jax = ClassTable(_is_of_jax).of
"""Whether a leaf's class is JAX's own, such as that of a function with a derivative of its own."""


def _ask_jax(leaf: Any) -> bool:
    try:
        jax.typeof(leaf)
    except TypeError:
        return False
    except Exception:
        return True  # JAX has something to say about such leaves: let it
    return True


# JAX takes every instance of these, or of none of the classes below them, for an array.
_ALIKE = (bool, int, float, complex, str, bytes, np.generic)


def _ask_of_class(leaf: Any) -> bool | None:
    cls = type(leaf)
    if not is_known_to_jax(cls):
        # JAX refuses these, and says what to do.
        return any("__jax_array__" in names_in(base) for base in bases_of(cls))
    are_alike = is_of_jax(leaf) or any(inherits(cls, base) for base in _ALIKE)
    return _ask_jax(leaf) if are_alike else None


is_class_traced = ClassTable(_ask_of_class).of
"""Whether JAX takes all instances of a leaf's class for arrays.

None where each has to be asked: an array of NumPy, of a subclass too, may hold text.
"""


def is_traced(leaf: Any) -> bool:
    """Whether JAX takes this leaf for an array."""
    if type(leaf) is np.ndarray:
        return leaf.dtype in _dtypes or _ask_jax(leaf)
    known = is_class_traced(leaf)
    return _ask_jax(leaf) if known is None else known


_dtype_of = np.ndarray.__dict__["dtype"].__get__


def have_common_dtypes(arrays: Iterable[Any]) -> bool:
    """Whether arrays of NumPy's hold numbers of the commonest dtypes, which JAX takes."""
    return _dtypes.issuperset(map(_dtype_of, arrays))


def untraced_among(leaves: Sequence[Any]) -> Sequence[int]:
    """The positions of the leaves that JAX doesn't take for arrays: of many, found by class."""
    examples = _core.one_of_each_class(leaves)
    answers = {key: is_class_traced(example) for key, example in examples.items()}
    arrays = id(np.ndarray)
    if arrays in answers:
        some = leaves if len(answers) == 1 else [x for x in leaves if type(x) is np.ndarray]
        if have_common_dtypes(some):
            answers[arrays] = True
    if all(answers.values()):
        return ()
    if len(examples) == 1 and None not in answers.values():
        return range(len(leaves))
    if None in answers.values():
        return [i for i, leaf in enumerate(leaves) if not is_traced(leaf)]
    return _core.positions_of_classes(leaves, [c for c, known in answers.items() if not known])


_NUMBERS = (bool, int, float, complex, np.bool_, np.number)
_is_number = ClassTable(lambda leaf: any(inherits(type(leaf), number) for number in _NUMBERS))


def is_number(leaf: Any) -> bool:
    """Whether a leaf is a number or a flag of Python's, or a scalar of NumPy's."""
    return _is_number.of(leaf)


# Immutable classes. Classes whose instances are equal only to themselves are as safe.
_IMMUTABLE = frozenset(map(id, (
    type(None), bool, int, float, complex, str, bytes, range, type(...),
    types.FunctionType, types.BuiltinFunctionType, types.MethodType,
)))  # fmt: skip
_IMMUTABLE_BASES = (type, enum.Enum, np.dtype, np.generic, jax.sharding.Sharding, jax.sharding.Mesh)


def _has_settled_class(value: Any) -> bool:
    cls = type(value)
    if id(cls) in _IMMUTABLE or any(inherits(cls, base) for base in _IMMUTABLE_BASES):
        return True
    return not compares(cls, object)


def compares(cls: type, root: type) -> bool:
    """Whether a class, or one between it and `root`, has an equality or a hash of its own."""
    own = (names_in(base) for base in bases_of(cls) if not inherits(root, base))
    return any("__eq__" in names or "__hash__" in names for names in own)


_is_settled = ChangingClassTable(_has_settled_class)


def _has_item_class(value: Any) -> bool:
    cls = type(value)
    return inherits(cls, tuple) and not compares(cls, tuple)


def _has_field_class(value: Any) -> bool:
    """Whether its class is a frozen dataclass with the methods that `@dataclass` writes."""
    names = names_in(type(value))
    parameters: Any = names.get("__dataclass_params__")
    codes = [getattr(names.get(name), "__code__", None) for name in ("__eq__", "__hash__")]
    if parameters is None or not (parameters.frozen and parameters.eq):
        return False
    # The functions that `@dataclass` makes stand in no file.
    return all(code is not None and code.co_filename == "<string>" for code in codes)


is_made_of_items = ChangingClassTable(_has_item_class).of
"""Whether a value is a tuple that compares by its items alone."""
is_made_of_fields = ChangingClassTable(_has_field_class).of
"""Whether a value is a frozen dataclass that compares by its fields alone."""


def is_settled(value: Any) -> bool:
    """Whether a value stays equal to what it was, unless it is another object.

    True for what can't be changed, for what is equal to itself alone, and for tuples and frozen
    dataclasses of such values.
    """
    if type(value) is Static or _is_settled.of(value):
        return True
    if is_made_of_items(value):
        return all(map(is_settled, tuple.__iter__(value)))
    if not is_made_of_fields(value):
        return False
    try:
        return all(is_settled(getattr(value, f.name)) for f in dataclasses.fields(value))
    except (AttributeError, RecursionError):
        return False


class Static:
    """A leaf that JAX doesn't see. Equal to another of the same value, by the rule of the core.

    Args:
        state: What a constant object held, where that counts. Compared where both have one.
    """

    __slots__ = ("_hash", "state", "value")

    def __init__(self, value: Any, state: Any = None) -> None:
        self.value = value
        self.state = state
        self._hash: int | None = None

    @property
    def inner(self) -> Any:
        """The value itself; that of a static argument is wrapped once more."""
        return self.value.inner if isinstance(self.value, Static) else self.value

    def check_hashable(self) -> None:
        """Raises what the value's own `__hash__` raises."""
        if isinstance(self.value, Static):
            self.value.check_hashable()
        self._hash = stable_hash(self.value)

    def __hash__(self) -> int:
        if self._hash is None:
            try:
                self._hash = stable_hash(self.value)
            except TypeError:  # fine in an output, which is compared but never looked up
                self._hash = stable_hash(type(self.value))
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Static):
            return NotImplemented
        hashes = self._hash, other._hash
        if None not in hashes and hashes[0] != hashes[1]:
            return False  # perhaps the same object, which was changed in between
        if self.value is other.value:
            return None in (self.state, other.state) or bool(self.state == other.state)
        try:
            return _core.is_same_value(self.value, other.value)
        except Exception:  # of the value's own `__eq__`
            return False

    def __repr__(self) -> str:
        return f"Static({bounded_repr(self.value)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Static, (self.value,)


def copy_of_array(array: Any) -> Any:
    """A copy of an array of JAX's, of the same type and sharding."""
    copied = jnp.copy(array)
    if getattr(array, "weak_type", False):
        copied = jax_private.convert_element_type(copied, copied.dtype, weak_type=True)
    return copied


class Carried:
    """Carries a value along with a key without being part of it: all instances are equal."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Carried)

    def __hash__(self) -> int:
        return 0


_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType)


# Hashes of static leaves that are the same in every process. Python's own hash of text differs from
# process to process, and that of a class or a function is its address. Processes that compile one
# program compare structures, and caches are shared.


def text_hash(text: str) -> int:
    """A number that depends on what a text says."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def stable_hash(value: Any) -> int:
    """A hash for values that are the same to the core (`is_same_value`).

    It is the same in every process for text, numbers, classes, functions, members of enums, and
    tuples, frozensets and partials of such values. Of any other class, it is the one that the class
    gives.

    Raises:
        TypeError: The value can't be hashed.
    """
    cls = type(value)
    if cls is str:
        return text_hash(value)
    if cls is int or cls is bool:
        return hash(value)
    if value is None:
        return 0
    if isinstance(value, tuple):
        return hash(tuple(map(stable_hash, value)))
    if isinstance(value, frozenset):
        return hash(frozenset(map(stable_hash, value)))
    if cls is bytes:
        return zlib.crc32(value)
    if isinstance(value, type):
        return text_hash(class_name(value))
    if isinstance(value, _FUNCTIONS):
        return text_hash(value.__qualname__)
    if isinstance(value, enum.Enum):
        return text_hash(value.name)
    if isinstance(value, np.generic):
        return text_hash(repr(value))
    if isinstance(value, float | complex) and (value != value or value == 0):
        return 0  # the hash of NaN is an address
    if cls is functools.partial:
        keywords = tuple((name, stable_hash(given)) for name, given in value.keywords.items())
        return hash((stable_hash(value.func), stable_hash(value.args), keywords))
    if is_made_of_fields(value):
        fields = [f for f in dataclasses.fields(value) if (f.compare if f.hash is None else f.hash)]
        return hash(tuple(stable_hash(getattr(value, f.name)) for f in fields))
    return hash(value)
