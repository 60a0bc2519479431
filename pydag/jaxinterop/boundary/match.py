# SPDX-License-Identifier: Apache-2.0
"""Structures that must be alike: a loop's carry before and after, the results of branches."""

from typing import Any, NamedTuple

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.errors import SharingError
from pydag.jaxinterop.messages.naming import Source
from pydag.jaxinterop.messages.roots import place_text, shortened
from pydag.jaxinterop.packed.dag import Dag, InnerDag, dag_of, rebuilt
from pydag.jaxinterop.prefixes.treatments import path_text
from pydag.jaxinterop.refs.results import is_fresh
from pydag.jaxinterop.refs.table import NO_REFS, RefNumber, RefTable
from pydag.jaxinterop.static.differentiable import is_ref
from pydag.jaxinterop.static.leaves import Static
from pydag.jaxinterop.static.untraced import Options, Untraced
from pydag.jaxinterop.structure.pairing import Pair, Pairs
from pydag.structure.listing import Listing
from pydag.typing import Dag as AnyDag
from pydag.typing import Leaf, Path

from .common_sharing import common_sharing


class Side(NamedTuple):
    """One of two structures that are compared."""

    name: str  # such as "given" or "returned by branch 1"
    dag: Dag

    @property
    def options(self) -> Options:
        """The options with which the DAG was flattened."""
        return self.dag._untraced.options


def _split(one: PyDagSpec, other: PyDagSpec) -> tuple[Path, Path] | None:
    """Two paths that lead to one object in `one` and to two in `other`, which are alike else."""
    met: dict[int, Pair] = {}
    pairs = Pairs(Listing.of(one), Listing.of(other))
    for pair in pairs:
        first = met.setdefault(pair.one, pair)
        if first.other != pair.other:
            return pairs.one.path(first.slots[0]), pairs.one.path(pair.slots[0])
        pairs.add(pairs.below(pair))
    return None


def check_alike(
    what: str,
    root: str,
    one: Side,
    other: Side,
    advice: str,
    table: RefTable = NO_REFS,
) -> None:
    """Checks that two Dags have equal untraced parts, but for the order in which dicts were filled.

    Args:
        what: What has to be alike, for the first line of the error.
        root: The name of both trees in paths.
        table: Refs, which must be the same at each place.

    Raises:
        SharingError: They are shared differently.
        TypeError: They are structured differently, or have different static leaves.
    """
    hidden = [table.hide(side.dag) for side in (one, other)]
    if hidden[0]._untraced.content == hidden[1]._untraced.content:
        return
    if one.dag.spec == other.dag.spec:
        raise TypeError(_static_difference(what, root, one, other, table))
    for side, against in ((one, other), (other, one)):
        try:
            _core.match_at(side.dag.spec, against.dag.tree, root)
        except SharingError:
            pass
        except ValueError as error:
            raise TypeError(
                f"{what} must be structured alike\n  {against.name} compared with {side.name}: "
                f"{shortened(str(error))}"
            ) from error
    for side, against in ((one, other), (other, one)):
        pair = _split(side.dag.spec, against.dag.spec)
        if pair is not None:
            first, second = (path_text(side.dag.tree, path, root, side.options) for path in pair)
            raise SharingError(
                f"{what} must be shared alike\n"
                f"  {side.name}: {first} and {second} are one object\n"
                f"  {against.name}: they are two\n"
                f"  {advice}\n"
                f"  {_cure(side, pair[1])}"
            )
    texts = [f"  {side.name}: {shortened(repr(side.dag.spec))}" for side in (one, other)]
    raise TypeError("\n".join([f"{what} must be structured alike", *texts]))


def _cure(side: Side, path: Path) -> str:
    """What to do where two things are one object by accident."""
    shared = next(shared for shared in side.dag.spec.shared if path in shared.paths)
    choice = "" if shared.type is not None else ', or say identity="nodes"'
    return f"If it is one object by accident, give one of the places a copy{choice}."


class SharedOtherwiseError(SharingError):
    """A function returned something that shares less than what it was given."""

    given: Untraced
    returned: Untraced


def alike(
    what: str,
    root: str,
    given: Dag,
    returned: AnyDag,
    options: Options,
    source: Source,
    table: RefTable = NO_REFS,
) -> InnerDag:
    """The result of a function, for JAX, where it must be structured like the function's argument.

    Dicts get the order that they have in the argument, so that each round of a loop sees the same
    one. What is one object in the result alone comes apart.

    Raises:
        SharedOtherwiseError: What is given as one object is returned as two.
        TypeError: It is structured differently, or has different static leaves.
    """
    dag = dag_of(returned, options, root)
    given = table.show(given)
    try:
        check_alike(
            what,
            root,
            Side("given", given),
            Side("returned", dag),
            "Let it return one object at both places where it is given one, and two where two.",
            table,
        )
    except SharingError as error:
        hidden, returned_hidden = table.hide(given), table.hide(dag)
        found = common_sharing(hidden._untraced, returned_hidden._untraced)
        if found.untraced == hidden._untraced:  # the result only shares more
            _check_refs(what, root, hidden._untraced, returned, table)
            return found.match(dag)
        otherwise = SharedOtherwiseError(*error.args)
        otherwise.add_note(f"The function is {source.text}.")
        otherwise.given, otherwise.returned = hidden._untraced, returned_hidden._untraced
        raise otherwise from None
    except TypeError as error:
        error.add_note(f"The function is {source.text}.")
        raise
    hidden, found_hidden = table.hide(given), table.hide(dag)
    if any(map(is_ref, found_hidden._leaves)):
        _check_refs(what, root, hidden._untraced, returned, table)
    return rebuilt(hidden._untraced, found_hidden._leaves, InnerDag)


def _check_refs(what: str, root: str, given: Untraced, returned: AnyDag, table: RefTable) -> None:
    """Checks that the refs that were given stand at their places in what is returned.

    Where an array was given, a ref that the function made itself is left for JAX to refuse.
    """
    wanted = dict(zip(given.positions, given.statics, strict=True))
    for position, leaf in enumerate(given.spec.flatten_up_to(returned)):
        static = wanted.get(position)
        if static is None:
            if not is_ref(leaf) or (table.number(leaf) is None and is_fresh(leaf)):
                continue
            difference = "is a ref, and an array was given there"
        elif type(static.value) is not RefNumber or leaf is table.refs[static.value.number]:
            continue
        else:
            difference = "is another ref than the one that was given there, or an array"
        where = place_text(given.spec.accessors()[position], root)
        raise TypeError(
            f"{what} must have the same refs at the same places\n"
            f"  {where} {difference}\n"
            "  A ref stays where it is: write into it, and return it at its place."
        )


def _static_difference(what: str, root: str, one: Side, other: Side, table: RefTable) -> str:
    """Says which leaf that JAX can't trace differs, or is an array on the other side."""
    found = [_statics(table.hide(side.dag)) for side in (one, other)]
    positions = sorted(found[0].keys() | found[1].keys())
    differs = next(i for i in positions if found[0].get(i) != found[1].get(i))
    where = path_text(one.dag.tree, one.dag.spec.paths()[differs], root, one.options)
    values = [statics[differs].value if differs in statics else None for statics in found]
    if any(type(value) is RefNumber for value in values):
        return _ref_difference(what, root, where, one, other, values, found)
    texts = [
        shortened(repr(statics[differs].value), 200) if differs in statics else "an array"
        for statics in found
    ]
    return (
        f"{what} must have the same leaves where JAX can't trace them\n"
        f"  {one.name}: {where} is {texts[0]}\n"
        f"  {other.name}: it is {texts[1]}\n"
        "  Such a leaf is part of what is compiled. Pass what differs as an array."
    )


def _ref_difference(
    what: str,
    root: str,
    where: str,
    one: Side,
    other: Side,
    values: list[Any],
    found: list[dict[int, Static]],
) -> str:
    def text(value: Any) -> str:
        if type(value) is not RefNumber:
            return "another ref, or an array"
        position = next((i for i, x in found[0].items() if x.value == value), None)
        if position is None:
            return "another ref"
        path = path_text(one.dag.tree, one.dag.spec.paths()[position], root, one.options)
        return f"the ref that is {one.name} at {path}"

    return (
        f"{what} must have the same refs at the same places\n"
        f"  {one.name}: {where} is {text(values[0])}\n"
        f"  {other.name}: it is {text(values[1])}\n"
        "  A ref stays where it is: write into it, and return it at its place."
    )


def _statics(dag: Dag) -> dict[int, Static]:
    return dict(zip(dag._untraced.positions, dag._untraced.statics, strict=True))


def matched(untraced: Untraced, tree: AnyDag, what: str, root: str) -> list[Leaf]:
    """`Untraced.match`, with a TypeError for another structure, as JAX raises here.

    Raises:
        TypeError: The tree is structured in another way.
        SharingError: It has different objects where there is one.
    """
    try:
        return untraced.match(tree, what, root)
    except SharingError:
        raise
    except ValueError as error:
        refusal = TypeError(*error.args)
        for note in getattr(error, "__notes__", ()):
            refusal.add_note(note)
        raise refusal from None
