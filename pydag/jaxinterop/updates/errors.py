# SPDX-License-Identifier: Apache-2.0
"""Why arguments can't be updated: they no longer have the structure, or the ties, that they had."""

from collections.abc import Iterator
from textwrap import indent
from typing import Any

import jax

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.errors import SharingError
from pydag.jaxinterop.messages.roots import place_text
from pydag.jaxinterop.notices.difference import difference
from pydag.jaxinterop.packed.dag import Dag
from pydag.jaxinterop.static.untraced import Untraced
from pydag.structure.text import short_repr

from .attributes import changed_attribute, other_attributes


def cut_tie(written: str, kept: str) -> SharingError:
    """The error where an object that stays as it is holds what is updated, too.

    Args:
        written: The path at which another object stands now.
        kept: The path at which it doesn't.
    """
    return SharingError(
        f"the function cuts a tie of what it updates\n"
        f"  given: {written} and {kept} are one object\n"
        f"  now: another one stands at {written} alone\n"
        "  Write it at both places; or give one of them a copy before the call "
        '(pj.tree.copy(...)), or say identity="nodes".'
    )


def made_tie(written: str, kept: str) -> SharingError:
    """The error where the function ties what it updates to an argument that stays as it is.

    Args:
        written: The path at which an object of the other argument stands now.
        kept: The path at which it stood.
    """
    return SharingError(
        "the function makes a tie between an argument that is updated and one that isn't\n"
        f"  given: {written} and {kept} are two objects\n"
        "  now: they are one\n"
        "  Inside the function, write jnp.copy(x) for an array, and pj.tree.copy(x) for what holds "
        "arrays; or update both arguments (update_argnums), and give them one object before the "
        "call."
    )


def of_another_trace(where: str, leaf: Any) -> Exception:
    """The error where a leaf was written by a function that had taken the object from around it.

    Args:
        where: The path of the leaf.
        leaf: What stands there.
    """
    return jax.errors.UnexpectedTracerError(
        f"{where} was written inside of an inner function (jit, scan, cond, vmap, grad ...), whose "
        f"trace has ended: {short_repr(leaf)} has no value outside of it\n"
        "  Hand the object to the inner function as an argument, with update_argnums there where "
        "that exists; or return what changed, and write it back with pydag.dag_update."
    )


def ref_put_in(where: str) -> TypeError:
    """The error where a function that is compiled puts a ref at a place that had something else.

    Args:
        where: The path of the place.
    """
    return TypeError(
        f"the function puts another ref at {where}, which can't come out of a compiled function as "
        "an update\n"
        "  Write into the ref that stands there (ref[...] = value), make it before the call where "
        "there is none, or return it and put it there afterwards."
    )


def static_changed(where: str, was: Any, now: Any) -> ValueError:
    """The error where a static leaf or attribute of an argument that is updated changed.

    Args:
        where: Its path.
    """
    return ValueError(
        f"{where} was {short_repr(was)} and is {short_repr(now)}: it is static, and an update only "
        "writes arrays\n"
        "  If it changes from call to call, make it an array; or return it, and set it after the "
        "call."
    )


def another_structure(
    old: PyDagSpec,
    new: PyDagSpec,
    before: tuple[Any, ...],
    after: tuple[Any, ...],
    names: tuple[str, ...],
) -> ValueError:
    """The error where an argument that is updated has another structure than it had.

    Args:
        before: The arguments as they were given.
        after: The same as the function left them.
        names: What the caller calls them.
    """
    for where, one, other in _changed_dags(before, after, names):
        first, second = (dag._take_apart()[0] for dag in (one, other))
        if first.spec == second.spec:
            return _static_otherwise(where, first, second)
        tree, now = (one.tree,), (other.tree,)
        flatten = first.options.flatten
        return another_structure(flatten(tree)[1], flatten(now)[1], tree, now, (where,))
    changed = changed_attribute(old, new, names)
    if changed is not None:
        return static_changed(*changed)
    error: type[ValueError] = ValueError
    makes_tie = False
    for spec, tree in ((old, after), (new, before)):
        try:
            spec.flatten_up_to(tree)
        except SharingError:
            error, makes_tie = SharingError, spec is new
        except ValueError:
            error = ValueError
            break
    what = "what is shared in it" if error is SharingError else "its structure"
    found = other_attributes(old, new, names) or _core.explain(old, new, roots=names)
    text = indent(found, "  ")
    return error(
        "an argument that is updated must keep its structure, but the function changes "
        f"{what}\n"
        "  (first: as it was given, second: as the function left it)\n"
        f"{text}\n"
        "  Leaves alone are written into the caller's objects. "
        + _cure(error is SharingError, makes_tie)
    )


def _cure(is_about_sharing: bool, makes_tie: bool) -> str:
    if not is_about_sharing:
        return (
            "Make what is missing before the call (an array of zeros for None), or return the new "
            "object."
        )
    if makes_tie:
        return (
            "Inside the function, write jnp.copy(x) at one of the places; or give one object at "
            'both before the call. With identity="nodes" arrays have no identity.'
        )
    return (
        "Write one object at both places, or give one of them a copy before the call; with "
        'identity="nodes" arrays have no identity.'
    )


def _changed_dags(
    before: tuple[Any, ...], after: tuple[Any, ...], names: tuple[str, ...]
) -> Iterator[tuple[str, Dag, Dag]]:
    """The Dags at the same places whose structures differ, each with the path of its tree."""
    (one, spec), (other, now) = (
        _core.flatten(trees, is_leaf=lambda x: type(x) is Dag) for trees in (before, after)
    )
    if spec != now:
        return
    for accessor, a, b in zip(spec.accessors(), one, other, strict=True):
        if type(a) is Dag and a._take_apart()[0] != b._take_apart()[0]:
            yield f"{place_text(accessor, names)}.tree", a, b


def _static_otherwise(where: str, one: Untraced, other: Untraced) -> ValueError:
    return ValueError(
        "what is static in a Dag belongs to its structure, which an update must keep, but the "
        "function changes it\n"
        "  (first: as it was given, second: as the function left it)\n"
        f"{indent(difference(one, other, where), '  ')}\n"
        "  Write an array for an array, and what is static for what is; or give the tree itself."
    )
