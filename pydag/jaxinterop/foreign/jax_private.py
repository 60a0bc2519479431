# SPDX-License-Identifier: Apache-2.0
"""What we use of JAX that JAX doesn't promise to keep: all of it is looked up here, at import.

And how JAX opens classes by fields. We find that out by trying it with a class, and by whether
another one is opened by the same code. What JAX says in its errors is here, too.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import jax

from pydag.registry.optree_private import look_up

F = TypeVar("F", bound=Callable[..., Any])


def _of_jax(module: str, name: str) -> Any:
    return look_up(module, name, "0.10.2 to 0.12", "jax>=0.10.2,<0.13")


registry: dict[type, Any] = _of_jax("jax._src.tree_util", "_registry")
"""How each class is opened and built; JAX has no public way to ask."""

flatten_one_level_with_keys: Callable[[Any], "tuple[Iterable[tuple[Any, Any]], Any] | None"] = (
    _of_jax("jax.tree_util", "default_registry.flatten_one_level_with_keys")
)
"""The children of a node, with JAX's keys, and its aux_data; None for a leaf."""

array_classes: Mapping[type, Any] = _of_jax("jax._src.core", "pytype_aval_mappings")
"""What JAX takes for arrays, by class. The public way to ask needs an instance, and writes it down:
that runs its class's own code, and may take for ever."""

hide_frames_of: Callable[[str], None] = _of_jax("jax._src.source_info_util", "register_exclusion")
"""Says that frames in files whose names begin so aren't the user's. Its public name is in
`jax.extend`, which takes a third of our import: it imports Pallas."""

convert_element_type: Callable[..., Any] = _of_jax("jax._src.lax.lax", "_convert_element_type")
"""Makes an array weakly typed, as Python's numbers are; the public function makes strong ones."""


def _optional(module: str, name: str) -> Any:
    """As `_of_jax`, for what we can do without: None where JAX doesn't have it."""
    try:
        return _of_jax(module, name)
    except ImportError:
        return None


hide_in_tracebacks: Callable[[str], object] = (
    _optional("jax._src.traceback_util", "register_exclusion") or bool
)
"""Says that JAX leaves out frames in files whose names begin so where it shortens a traceback."""

_api_boundary: Any = _optional("jax._src.traceback_util", "api_boundary")


def shortens_tracebacks(fun: F) -> F:
    """A function below which tracebacks are shortened, as those of JAX's own functions are.

    `JAX_TRACEBACK_FILTERING=off` shows every frame.
    """
    shortened: F = fun if _api_boundary is None else _api_boundary(fun)
    return shortened


shortening_code: object = getattr(shortens_tracebacks(lambda: None), "__code__", None)
"""The code that `shortens_tracebacks` puts around a function."""


differentiates_refs = _optional("jax._src.api", "_vjp_accum") is not None
"""Whether `jax.vjp` differentiates by refs among the primals, and adds what it finds to refs."""

is_top_level: "Callable[[], bool] | None" = _optional("jax._src.core", "trace_ctx.is_top_level")
"""Whether JAX traces nothing at the moment."""

_contexts: Any = _optional("jax._src.core", "trace_ctx")


def is_of_this_trace(tracer: Any) -> bool:
    """Whether what JAX traces at the moment has made a tracer; True where that can't be told."""
    if _contexts is None or not hasattr(tracer, "_trace"):
        return True
    return tracer._trace is _contexts.trace


def is_dead(leaf: Any) -> bool:
    """Whether a leaf belongs to a trace that has ended; False where that can't be told."""
    trace, at = getattr(leaf, "_trace", None), getattr(_contexts, "trace", None)
    if trace is None or at is None:
        return False
    while at is not None and at is not trace:
        at = getattr(at, "parent_trace", None)
    return at is None


get_referent: Any = _optional("jax._src.core", "get_referent")


def identity(ref: Any) -> int:
    """A number for a ref: the same one for each object by which code may know it.

    Such are the ref itself, and the tracers that JAX has for it inside of a derivative, a map or a
    function that closes over it. The numbers alone may be compared: what stands behind a tracer
    isn't differentiated, nor mapped, as the tracer is.
    """
    return id(ref) if get_referent is None else id(get_referent(ref))


def around() -> tuple[list[Any], list[Any]]:
    """What the function that is traced now takes from around it, and the refs of these it writes.

    Both lists are about what was traced up to now. They are empty where JAX doesn't tell.
    """
    frame: Any = getattr(getattr(_contexts, "trace", None), "frame", None)
    try:
        values = {id(var): _constant(x) for var, x in frame.constvar_to_val.items()}
        found: dict[int, Any] = {}
        for equation in frame.get_eqns() if values else ():
            for effect in equation.effects:
                value = values.get(id(effect.input)) if isinstance(effect, write_effects) else None
                if value is not None:
                    found[identity(value)] = value
    except (AttributeError, TypeError):
        return [], []
    return list(values.values()), list(found.values())


def writes_into_inputs() -> bool:
    """Whether the function that is traced now writes into refs that it was given."""
    frame: Any = getattr(getattr(_contexts, "trace", None), "frame", None)
    try:
        inputs = {id(var) for var in frame.invars}
        effects = (effect for equation in frame.get_eqns() for effect in equation.effects)
        return any(isinstance(x, write_effects) and id(x.input) in inputs for x in effects)
    except AttributeError:
        return False


def _constant(value: Any) -> Any:
    return getattr(value, "canonical", value)


eval_jaxpr: Any = _optional("jax._src.core", "eval_jaxpr")
"""Runs what was traced."""

discharge_state: Any = _optional("jax._src.state.discharge", "discharge_state")
"""Makes a function of refs one of their contents."""

closed_jaxpr: Any = _optional("jax._src.core", "ClosedJaxpr")
"""What was traced with its constants; JAX 0.12 has one class for both."""

user_context: Any = _optional("jax._src.source_info_util", "user_context")
name_stack: Any = _optional("jax._src.source_info_util", "current_name_stack")
"""Where in the user's code a step was traced."""

array_class: "type | None" = _optional("jax._src.array", "ArrayImpl")
"""Of ordinary arrays."""

write_effects: tuple[Any, ...] = tuple(
    effect
    for effect in (
        _optional("jax._src.state.types", name) for name in ("WriteEffect", "AccumEffect")
    )
    if effect is not None
)
"""What a traced function that writes into a ref has among its effects."""


def ref_content(ref: Any) -> Any:
    """The array that is a ref's content, not a copy. AttributeError where JAX has changed."""
    return ref._refs._buf


def set_ref_content(ref: Any, content: Any) -> None:
    """Makes an array, which nobody else may hold, a ref's content."""
    ref._refs._buf = content


def ref_type(ref: Any) -> Any:
    """The type of a ref, with `inner_aval`, `memory_space` and `kind`, where JAX has it."""
    return ref._aval


def closed_over(traced: Any) -> tuple[Any, ...]:
    """What a function that `jax.jit(f).trace(...)` has traced takes from around it."""
    return (*getattr(traced.jaxpr, "consts", ()), *getattr(traced, "_consts", ()))


def written_inputs(traced: Any) -> frozenset[int]:
    """Which of its flat arguments a traced function writes into.

    Args:
        traced: What `jax.jit(f).trace(...)` returns.
    """
    jaxpr = getattr(traced.jaxpr, "jaxpr", traced.jaxpr)
    numbers = {id(var): i for i, var in enumerate(jaxpr.invars)}
    skipped = len(getattr(traced, "_consts", ()))
    effects = (effect for effect in jaxpr.effects if isinstance(effect, write_effects))
    found = (numbers.get(id(effect.input), -1) - skipped for effect in effects)
    return frozenset(number for number in found if number >= 0)


def writes(traced: Any) -> bool:
    """Whether a traced function writes into refs that it is given or takes from around it."""
    jaxpr = getattr(traced.jaxpr, "jaxpr", traced.jaxpr)
    return any(isinstance(effect, write_effects) for effect in jaxpr.effects)


_processes: Any = _optional("jax._src.distributed", "global_state")


def coordination_client() -> Any:
    """What the processes of a program leave messages with; RuntimeError where there is none."""
    client = getattr(_processes, "client", None)
    if client is None:
        raise RuntimeError("jax.distributed is not initialized")
    return client


PRIVATE_PARAMETERS = "_private_parameters"
"""The option of `lower` that `jax.export` alone gives."""


def inputs_of(leaf: Any) -> list[Any] | None:
    """What a traced array was computed from, in one step; None where JAX doesn't say."""
    try:
        equation = leaf.parent
        return [] if equation is None else list(equation.in_tracers)
    except AttributeError:
        return None


# How JAX's refusals begin, as patterns that are compiled when there is an error. What a user's
# function raised isn't among them.
GRADIENT_REFUSED = r"Gradient only defined for|\w+ (requires|with holomorphic=True requires)"
WRITE_REFUSED = r"with a differentiated value on a non-differentiated array reference"
MAP_REFUSED = r"(at )?vmap "
VALUE_WANTED = r"(?m)it depends on the values? of the arguments? (.*)\.$"
"""Said where Python asks for a value while a function is traced; with the arguments' names."""


class _Known:
    """A class to try out how JAX opens classes by fields."""


def _closure(function: Any) -> dict[str, Any]:
    """What a function has from the function around it; nothing where it isn't all there."""
    try:
        cells = (cell.cell_contents for cell in function.__closure__ or ())
        return dict(zip(function.__code__.co_freevars, cells, strict=True))
    except (AttributeError, ValueError):
        return {}


class _Whole:
    """A class to try out how JAX opens what has no children."""


jax.tree_util.register_dataclass(_Known, ("data",), ("meta",))
jax.tree_util.register_static(_Whole)


def _names(entry: Any) -> tuple[Any, Any]:
    closure = _closure(entry.to_iter)
    return closure.get("data_fields"), closure.get("meta_fields")


def _codes(entry: Any) -> list[Any]:
    return [getattr(function, "__code__", None) for function in entry]


_BY_FIELDS = _codes(registry[_Known]) if _names(registry[_Known]) == (("data",), ("meta",)) else []
_AS_WHOLE = _codes(registry[_Whole])


def dataclass_fields(entry: Any) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The data and the meta fields that were given to `register_dataclass`.

    None for an entry of the registry that `register_dataclass` hasn't made.
    """
    return _names(entry) if _codes(entry) == _BY_FIELDS else None


def is_by_register_static(entry: Any) -> bool:
    """Whether `register_static` has made an entry of the registry."""
    return None not in _AS_WHOLE and _codes(entry) == _AS_WHOLE
