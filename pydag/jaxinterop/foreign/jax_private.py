# SPDX-License-Identifier: Apache-2.0
"""What pydag uses of JAX that JAX doesn't promise to keep, looked up here at import."""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.hijax import AbstractRef
from jax.interpreters import ad

import pydag._core as _core
from pydag.registry.optree_private import look_up


def _of_jax(module: str, name: str, *instead: Any) -> Any:
    """A private object of JAX's; where something else is given, it stands for a missing one."""
    try:
        return look_up(module, name, "0.10.2 to 0.12", "jax>=0.10.2,<0.13")
    except ImportError:
        if not instead:
            raise
        return instead[0]


registry: dict[type, Any] = _of_jax("jax._src.tree_util", "_registry")
"""How JAX opens and builds each class; there is no public way to ask."""

flatten_one_level_with_keys: Callable[[Any], "tuple[Iterable[tuple[Any, Any]], Any] | None"] = (
    _of_jax("jax.tree_util", "default_registry.flatten_one_level_with_keys")
)
"""The children of a node, with JAX's keys, and its aux_data; None for a leaf."""

array_classes: Mapping[type, Any] = _of_jax("jax._src.core", "pytype_aval_mappings")
"""What JAX takes for arrays, by class. `jax.typeof` needs an instance and runs its code."""

describe: Callable[..., Any] = jax.ShapeDtypeStruct
"""Describes an array. The class is public, but has no types."""

ArrayImpl: type = _of_jax("jax._src.array", "ArrayImpl")
"""The class of ordinary arrays."""

convert_element_type: Callable[..., Any] = _of_jax("jax._src.lax.lax", "_convert_element_type")
"""Makes an array weakly typed, as Python's numbers are; the public function makes strong ones."""

hide_frames_of: Any = _of_jax("jax._src.source_info_util", "register_exclusion", id)
"""Says that frames in files with this prefix aren't the user's."""

hide_in_tracebacks: Any = _of_jax("jax._src.traceback_util", "register_exclusion", id)
"""Says that JAX leaves out such frames where it shortens a traceback."""

F = TypeVar("F", bound=Callable[..., Any])
shortens_tracebacks: Callable[[F], F] = _of_jax(
    "jax._src.traceback_util", "api_boundary", lambda function: function
)
"""A function below which tracebacks are shortened, as those of JAX's own functions are."""

_contexts: Any = _of_jax("jax._src.core", "trace_ctx")

get_referent: Callable[[Any], Any] = _of_jax("jax._src.core", "get_referent")
"""The one object behind a ref and behind all tracers that stand for it."""

PRIVATE_PARAMETERS = "_private_parameters"
"""The option of `lower` that `jax.export` alone gives."""

_WRITES: tuple[type, ...] = tuple(
    _of_jax("jax._src.state.types", name) for name in ("WriteEffect", "AccumEffect")
)


def is_top_level() -> bool:
    """Whether JAX traces nothing at the moment."""
    return bool(_contexts.is_top_level())


def is_staging() -> bool:
    """Whether JAX stages out what it is given; under `jax.disable_jit()` it runs it as it is."""
    config: Any = jax.config  # its attributes have no types in older JAX
    return not config.jax_disable_jit


def is_of_this_trace(tracer: Any) -> bool:
    """Whether the trace that runs now has made a tracer."""
    return isinstance(tracer, jax.core.Tracer) and tracer._trace is _contexts.trace


def is_dead(leaf: Any) -> bool:
    """Whether a leaf is a tracer of a trace that has ended."""
    if not isinstance(leaf, jax.core.Tracer):
        return False
    trace, at = leaf._trace, _contexts.trace
    while at is not None and at is not trace:
        at = getattr(at, "parent_trace", None)
    return at is None


def is_handed_through(new: Any, old: Any) -> bool:
    """Whether a value is another one, as an inner function returned it that left it alone.

    In a trace its program shows that; what has run is compared by its elements.
    """
    while (equation := getattr(new, "parent", None)) is not None and new is not old:
        new = _handed_through(equation, new.val)
    if new is old or type(new) is not type(old):
        return new is old
    if isinstance(new, jax.core.Tracer):
        parts = "primal", "tangent", "val", "batch_dim"
        pairs = ((getattr(new, name, None), getattr(old, name, None)) for name in parts)
        return new._trace is old._trace and all(is_handed_through(*pair) for pair in pairs)
    if isinstance(new, ad.Zero):
        return bool(new.aval == old.aval)
    if not isinstance(new, jax.Array | np.ndarray):
        return bool(new == old)  # an axis, a variable of a program
    try:
        if jnp.issubdtype(new.dtype, jax.dtypes.extended):
            new, old = jax.random.key_data(new), jax.random.key_data(old)
        return new.dtype == old.dtype and np.array_equal(new, old)
    except (TypeError, RuntimeError):
        return True  # what can't be read isn't known to have changed


def _handed_through(equation: Any, output: Any) -> Any:
    """Which input of an equation one of its outputs is; None if it is none."""
    number = next(i for i, x in enumerate(equation.outvars) if x is output)
    names = "jaxpr", "call_jaxpr", "body_jaxpr"
    programs = [equation.params[name] for name in names if name in equation.params]
    programs += equation.params.get("branches", ())
    # In front of what the program gets: the index of a branch, the constants of a condition.
    others = equation.params.get("cond_nconsts", int("branches" in equation.params))
    found = set()
    for program in (getattr(closed, "jaxpr", closed) for closed in programs):
        makers = {id(x): made for made in program.eqns for x in made.outvars}
        value = program.outvars[number]
        while (maker := makers.get(id(value))) is not None:
            value = _handed_through(maker, value)
        found.add(next((i for i, x in enumerate(program.invars) if x is value), None))
    source = found.pop() if len(found) == 1 else None
    return None if source is None else equation.invars[others + source]


def closed_over(traced: Any) -> tuple[Any, ...]:
    """What a function that `jax.jit(f).trace(...)` has traced takes from around it."""
    return (*getattr(traced.jaxpr, "consts", ()), *getattr(traced, "_consts", ()))


def written_inputs(traced: Any, *, or_read: bool = False) -> frozenset[int]:
    """Which of its flat arguments a function that `jax.jit(f).trace(...)` traced writes into.

    Args:
        or_read: Whether those that it only reads count, too.
    """
    jaxpr: Any = getattr(traced.jaxpr, "jaxpr", traced.jaxpr)
    numbers = {id(var): i for i, var in enumerate(jaxpr.invars)}
    skipped = len(getattr(traced, "_consts", ()))
    effects: Any = (x for x in jaxpr.effects if or_read or isinstance(x, _WRITES))
    found = (numbers.get(id(getattr(x, "input", None)), -1) - skipped for x in effects)
    return frozenset(number for number in found if number >= 0)


_partial: Any = jax.tree_util.Partial
_Shim: Any = type(_partial(functools.partial(print)).func)


def function_in(detail: Any) -> Any:
    """The function of a `Partial`, given its auxiliary data: JAX wraps one that is a partial."""
    return detail.fun if type(detail) is _Shim else detail


def is_ref(leaf: Any) -> bool:
    """Whether a leaf is a `jax.Ref`, a tracer of one, or the description of one."""
    cls = type(leaf)
    if cls is ArrayImpl:
        return False
    if isinstance(leaf, jax.core.Tracer):
        return isinstance(leaf.aval, AbstractRef)
    is_description = cls is jax.ShapeDtypeStruct and getattr(leaf, "is_ref", False)
    return isinstance(leaf, jax.Ref) or is_description


_get_aval = attrgetter("aval")


def ref_positions(leaves: Sequence[Any]) -> list[int]:
    """The positions of the refs among some leaves."""
    kinds = jax.Ref, jax.core.Tracer, jax.ShapeDtypeStruct
    examples = _core.one_of_each_class(leaves).items()
    some = {key: x for key, x in examples if type(x) is not ArrayImpl and isinstance(x, kinds)}
    found = _core.positions_of_classes(leaves, list(some)) if some else []
    if some and all(isinstance(x, jax.core.Tracer) for x in some.values()):
        avals = list(map(_get_aval, map(leaves.__getitem__, found)))  # no call in Python for each
        if not any(isinstance(x, AbstractRef) for x in _core.one_of_each_class(avals).values()):
            return []
    return [i for i in found if is_ref(leaves[i])]


def is_ordinary_ref(ref: Any) -> bool:
    """Whether a ref only holds an array: it has no kind and no memory space of its own."""
    if type(ref) is jax.ShapeDtypeStruct:
        return True
    aval: Any = ref._aval if type(ref) is jax.Ref else jax.typeof(ref)
    return aval.memory_space is None and aval.kind is None and not getattr(aval, "is_high", False)


def content_of(ref: Any) -> Any:
    """The array that is a ref's content, not a copy; for a description, that of the array."""
    is_description: bool = type(ref) is jax.ShapeDtypeStruct
    return ref.update(is_ref=False) if is_description else ref._refs._buf


def read(leaf: Any) -> Any:
    """A copy of the content of a ref, and any other leaf itself."""
    return leaf[...] if is_ref(leaf) else leaf


def set_content(ref: Any, content: Any) -> None:
    """Makes an array, which nobody else may hold, a ref's content."""
    ref._refs._buf = content


# --- how JAX opens classes ---


# Classes to try out how JAX opens classes by fields, and those without children.
_Fields, _Whole = type("Fields", (), {}), type("Whole", (), {})
jax.tree_util.register_dataclass(_Fields, ("data",), ("meta",))
jax.tree_util.register_static(_Whole)


def _codes(entry: Any) -> list[Any]:
    return [getattr(function, "__code__", None) for function in entry]


def _names(entry: Any) -> tuple[Any, Any]:
    cells = (cell.cell_contents for cell in entry.to_iter.__closure__ or ())
    names = dict(zip(entry.to_iter.__code__.co_freevars, cells, strict=True))
    return names.get("data_fields"), names.get("meta_fields")


_BY_FIELDS = _codes(registry[_Fields]) if _names(registry[_Fields])[0] == ("data",) else []
_AS_WHOLE = _codes(registry[_Whole])


def dataclass_fields(entry: Any) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The data and the meta fields that were given to `register_dataclass`.

    None for an entry of the registry that `register_dataclass` hasn't made.
    """
    return _names(entry) if _codes(entry) == _BY_FIELDS else None


def is_by_register_static(entry: Any) -> bool:
    """Whether `register_static` has made an entry of the registry."""
    return None not in _AS_WHOLE and _codes(entry) == _AS_WHOLE
