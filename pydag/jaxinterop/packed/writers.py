# SPDX-License-Identifier: Apache-2.0
"""How objects are written whose classes open and build them by functions of their own."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import pydag._core as _core
from pydag.jaxinterop.foreign.flax_private import set_raw_value
from pydag.sharing.update import writer_finders
from pydag.structure.made_specs import dagspec_list
from pydag.typing import Leaf

from .dag import Dag

Writer = Callable[[Any, Sequence[Any]], None]
"""Puts new children into an instance."""


def writer_of(cls: type) -> Writer | None:
    """How instances of a class are written; None where that isn't known."""
    if issubclass(cls, Dag):
        return _write_dag
    own: Writer | None = getattr(cls, "_write_children", None) if _is_ours(cls) else None
    if own is not None:
        return own
    nnx = sys.modules.get("flax.nnx")
    if nnx is None:
        return None
    if issubclass(cls, nnx.Variable):
        return _write_variable
    return _write_module if issubclass(cls, nnx.Pytree) else None


writer_finders.append(writer_of)


def _is_ours(cls: type) -> bool:
    return cls.__module__.startswith("pydag.")


def _write_dag(dag: Dag, leaves: Sequence[Leaf]) -> None:
    """Writes into the tree of a Dag: whoever holds that sees the new leaves."""
    untraced = dag._take_apart()[0]
    if dag._built is None:  # nobody holds its tree
        dag._untraced, dag._leaves = untraced, tuple(leaves)
        return
    holder = [dag.tree]  # a tuple or a leaf is replaced there
    plan = _core.update_plan(
        spec=dagspec_list([untraced.spec], namespace=untraced.spec.namespace),
        positions=untraced.traced_positions(),
        static_positions=(),
        statics=(),
        writers=writer_of,
        then=None,
    )
    _core.carry_out(plan, holder, tuple(leaves))
    dag._put(holder[0], untraced, leaves)


def _write_variable(variable: Any, children: Sequence[Any]) -> None:
    set_raw_value(variable, children[0])


def _write_module(module: Any, children: Sequence[Any]) -> None:
    entries = _core.open_one_level(module)[1]
    attributes = vars(module)
    for name, child in zip(entries, children, strict=True):
        if attributes[name] is not child:
            attributes[name] = child
