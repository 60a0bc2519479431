# SPDX-License-Identifier: Apache-2.0
"""How flax opens and builds the objects of NNX, which it doesn't promise: all is looked up here.

What is said here is only tried: `registries/stand_ins.py` compares it with what flax does.
A flax that has no such thing, or is still being imported, is asked for each object.
"""

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pydag._core as _core
from pydag.registry.class_table import bases_of, inherits, names_in

# The attribute that says which attributes of an instance are children. It is the first static one.
_NODES = "_pytree__nodes"
# The slots of a Variable for its value and its metadata.
_RAW_VALUE, _METADATA = "_raw_value", "_var_metadata"


class BySlots(NamedTuple):
    """Instances with slots, as `_core.stand_in_by_slots` describes them."""

    child: str | None
    entry: str | None
    items: str | None
    plain: tuple[str, ...]
    fresh: str
    make_fresh: Callable[[], Any]
    write: Callable[[Any, Any], None] | None


class ByAttributes(NamedTuple):
    """Instances say themselves which attributes are children: `_core.stand_in_by_attributes`."""

    kinds: str
    kinds_class: type
    mapping: str
    # An instance that has one of these attributes itself is flax's to open.
    not_of_instances: tuple[str, ...]


def opened_by_flax(cls: type, entry: Any) -> BySlots | ByAttributes | None:
    """How flax opens and builds the instances of a class; None where that isn't known.

    Args:
        entry: What JAX has registered for the class.
    """
    if "flax.nnx" not in sys.modules or _has_own(cls, "__getattribute__", "__del__", "__dict__"):
        return None
    for known in (_variables, _states, _pytrees):
        try:
            found: BySlots | ByAttributes | None = known(cls, entry)
        except (AttributeError, KeyError):  # another release, or one that isn't whole yet
            continue
        if found is not None:
            return found
    return None


def variable_classes() -> tuple[type, type] | None:
    """`nnx.Variable` and `nnx.Param`; None where NNX isn't loaded."""
    library: Any = sys.modules.get("flax.nnx.variablelib")
    variable, param = getattr(library, "Variable", None), getattr(library, "Param", None)
    return (variable, param) if isinstance(variable, type) and isinstance(param, type) else None


def writer_of(cls: type) -> Callable[[Any, Sequence[Any]], None] | None:
    """How instances of NNX's classes are written, without flax's check of the trace."""
    classes = variable_classes()
    if classes is None:
        return None
    if inherits(cls, classes[0]):
        return _write_variable
    pytree = getattr(sys.modules.get("flax.nnx"), "Pytree", None)
    return _write_attributes if isinstance(pytree, type) and inherits(cls, pytree) else None


def _write_variable(variable: Any, children: Sequence[Any]) -> None:
    object.__setattr__(variable, _RAW_VALUE, children[0])


def _write_attributes(node: Any, children: Sequence[Any]) -> None:
    attributes = vars(node)
    for name, child in zip(_core.open_one_level(node)[1], children, strict=True):
        if attributes[name] is not child:
            attributes[name] = child


def _has_own(cls: type, *names: str) -> bool:
    """Whether a class, or one that it inherits from, defines one of these otherwise than usual.

    What flax's own classes do is known: they look out for names that were given up.
    """
    bases = [base for base in bases_of(cls) if base is not object and not _is_flaxs(base)]
    is_layout = type(type("C", (), {}).__dict__["__dict__"])  # what every class with a dict has
    return any(
        name in names_in(base) and not isinstance(names_in(base)[name], is_layout)
        for base in bases
        for name in names
    )


def _is_flaxs(cls: type) -> bool:
    module = names_in(cls).get("__module__")
    return type(module) is str and module.startswith("flax.")


def _variables(cls: type, entry: Any) -> BySlots | None:
    library: Any = sys.modules["flax.nnx.variablelib"]
    build = entry.from_iter
    if entry.to_iter is not library._variable_flatten or not isinstance(build, functools.partial):
        return None
    if build.func is not library._variable_unflatten or build.args[0] is not cls or build.keywords:
        return None
    make_fresh, write = _trace_state(), library.Variable.set_raw_value
    return BySlots(_RAW_VALUE, "value", _METADATA, (), "_trace_state", make_fresh, write)


def _states(cls: type, entry: Any) -> BySlots | None:
    library: Any = sys.modules["flax.nnx.pytreelib"]
    if cls is not library.PytreeState or entry.to_iter is not library._flatten_pytree_state:
        return None
    plain = ("_initializing", "_is_setup")
    return BySlots(None, None, None, plain, "_trace_state", _trace_state(), None)


def _pytrees(cls: type, entry: Any) -> ByAttributes | None:
    library: Any = sys.modules["flax.nnx.pytreelib"]
    own = names_in(library.Pytree)
    is_flaxs = (
        entry.to_iter is own["_pytree__flatten"]
        and entry.from_iter.__func__ is own["_pytree__unflatten"].__func__
        and entry.from_iter.__self__ is cls
    )
    if not is_flaxs:
        return None
    kinds_class = library.graphlib.HashableMapping
    return ByAttributes(_NODES, kinds_class, "_mapping", ("_pytree__has_int_keys",))


def _trace_state() -> Callable[[], Any]:
    found: Callable[[], Any] = sys.modules["flax.nnx.tracers"].TraceState
    return found
