# SPDX-License-Identifier: Apache-2.0
"""The contents of refs: read and written as arrays, where JAX can't do that fast itself."""

import functools
import sys
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp

import pydag._core as _core
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.static.differentiable import is_ref
from pydag.typing import Leaf

REF: Any = getattr(jax, "Ref", None)
"""The class of concrete refs; None where JAX has none."""

if REF is not None:
    _core.set_identity_everywhere(REF)  # two Variables of NNX that hold one ref hold one object

new_ref: Any = getattr(jax, "new_ref", None)
"""Makes a ref."""


is_top_level: "Callable[[], bool]" = jax_private.is_top_level or (lambda: False)
"""Whether JAX traces nothing at the moment."""


access: "_core.RefAccess | None" = None
"""How the core reads and writes contents; None where JAX has to."""

if REF is not None and jax_private.array_class is not None and jax_private.write_effects:
    access = _core.ref_access(
        REF, jax_private.array_class, jax.sharding.SingleDeviceSharding, is_top_level, new_ref
    )


@functools.cache
def _works() -> bool:
    """Whether JAX's refs behave as this module assumes. Asking makes JAX start its devices."""
    try:
        ref = new_ref(jnp.zeros(2))
        content = jax_private.ref_content(ref)
        jax_private.set_ref_content(ref, content + 1)
        return type(ref) is REF and is_ordinary(ref) and ref[...].tolist() == [1.0, 1.0]
    except Exception:
        return False


_maybe_refs = frozenset((id(REF), id(jax.ShapeDtypeStruct)))


def refs_among(leaves: Sequence[Leaf]) -> tuple[int, ...]:
    """Where concrete refs stand, or what describes them."""
    if REF is None or _maybe_refs.isdisjoint(map(id, map(type, leaves))):
        return ()
    return tuple(i for i, leaf in enumerate(leaves) if type(leaf) is REF or is_described_ref(leaf))


def is_described_ref(leaf: Leaf) -> bool:
    """Whether it stands for a ref where a function is traced for descriptions of its arguments."""
    return type(leaf) is jax.ShapeDtypeStruct and getattr(leaf, "is_ref", False)


def ref_kinds(leaves: Sequence[Leaf]) -> dict[int, str]:
    """What sort of ref stands at each place that has one, in words."""
    found = ((i, leaf) for i, leaf in enumerate(leaves) if is_ref(leaf) or is_described_ref(leaf))
    return {i: _kind_text(leaf) for i, leaf in found}


def _kind_text(ref: Any) -> str:
    if type(ref) is not REF and not is_described_ref(ref):
        return "a traced ref"
    return "a ref" if is_ordinary(ref) else "a ref with a kind= or a memory_space= of its own"


def refs_around(traced: Any) -> list[Any]:
    """The refs that a function that `jax.jit(f).trace(...)` has traced takes from around it."""
    return list(filter(is_ref, jax_private.closed_over(traced)))


def is_ordinary(ref: Any) -> bool:
    """Whether a concrete ref, or a described one, does nothing but hold an array."""
    if is_described_ref(ref):
        return True
    kind = jax_private.ref_type(ref)
    return kind.memory_space is None and kind.kind is None and not kind.is_high


def may_pass_contents(refs: Sequence[Any]) -> bool:
    """Whether a compiled function may be given the contents of these concrete refs."""
    return access is not None and is_top_level() and _works() and all(map(is_ordinary, refs))


def content_of(ref: Any) -> Any:
    """The array in a concrete ref, not a copy; its description for a described one."""
    if is_described_ref(ref):
        return ref.update(is_ref=False)
    return jax_private.ref_content(ref)


def _count(ref: Any) -> int:
    return sys.getrefcount(jax_private.ref_content(ref))


_COUNT_OF_OWN = _count(SimpleNamespace(_refs=SimpleNamespace(_buf=object())))


def own_content_of(ref: Any) -> Any:
    """The array in a concrete ref; a copy where somebody else has it, too.

    That is who has called `jax.freeze`: the memory of an array that is written must not be reused
    then.
    """
    is_own = is_described_ref(ref) or _count(ref) <= _COUNT_OF_OWN
    return content_of(ref) if is_own else _copied_content(ref)


def _copied_content(ref: Any) -> Any:
    return jnp.copy(content_of(ref))


def write(ref: Any, content: Any) -> None:
    """Makes an array, which nobody else may hold, the content of a concrete ref."""
    jax_private.set_ref_content(ref, content)


def pin_of(content: Any) -> Any:
    """The sharding that a new content must be given to have that of the old one; None for none.

    Over Explicit axes of a mesh an array is sharded by its type, which JAX keeps; and JAX allows no
    constraint that names one of them.
    """
    sharding = content.sharding
    is_plain = isinstance(sharding, jax.sharding.SingleDeviceSharding)
    if is_plain or not hasattr(jax.typeof(content), "sharding"):
        return None
    axes = _by_constraint(sharding)
    if axes is None:
        return sharding
    if not axes:
        return None
    spec = [
        tuple(name for name in (part if isinstance(part, tuple) else (part,)) if name in axes)
        or None
        for part in sharding.spec
    ]
    make: Any = jax.sharding.PartitionSpec
    return jax.sharding.NamedSharding(sharding.mesh, make(*spec))


def _by_constraint(sharding: Any) -> frozenset[str] | None:
    """The axes of a mesh that aren't part of an array's type; None for all of them."""
    mesh: Any = getattr(sharding, "mesh", None)
    kinds, explicit = getattr(mesh, "axis_types", None), getattr(jax.sharding, "AxisType", None)
    if not isinstance(kinds, tuple) or explicit is None or explicit.Explicit not in kinds:
        return None
    pairs = zip(mesh.axis_names, kinds, strict=True)
    return frozenset(name for name, kind in pairs if kind is not explicit.Explicit)
