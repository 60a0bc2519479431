# SPDX-License-Identifier: Apache-2.0
"""Masks and labels of optax's transformations, fitted to the `Dag` that they are for.

They may be given as a tree of the model's structure, a prefix of one, or a function. Each leaf has
one answer, whatever number of paths leads to it.
"""

import functools
import sys
import warnings
from collections.abc import Callable, Container, Sequence
from typing import Any

import numpy as np

import pydag._core as _core
from pydag.errors import SharingError
from pydag.jaxinterop.foreign import optax_private
from pydag.jaxinterop.packed.dag import Dag, rebuilt
from pydag.jaxinterop.prefixes.own_nodes import with_own_nodes
from pydag.jaxinterop.prefixes.treatments import Question, one_level, treatments
from pydag.jaxinterop.static.untraced import Options, Untraced
from pydag.typing import Leaf

from .unfolded import is_leaf, models_for_functions

_ROOT = "params"

_ADVICE = (
    "Give every path of a shared leaf one answer; pydag.dag_mask makes masks in which a leaf is "
    "selected by any of its paths."
)


def _is_empty(x: Any) -> bool:
    """Whether it is a node without children, such as optax's mark for a masked leaf."""
    return not is_leaf(x) and isinstance(x, (tuple, list, dict)) and len(x) == 0


def _is_nothing(x: Any) -> bool:
    return x is None or _is_empty(x)


def _are_flags_one(first: Any, second: Any, _: Leaf) -> bool:
    return bool(first) == bool(second)


_QUESTIONS = {
    optax_private.FLAGS: Question(
        "a mask",
        lambda flag: f"{bool(flag)} in the mask",
        _ADVICE,
        accepts=lambda x: not _is_nothing(x),
        are_one=_are_flags_one,
        is_answer=_is_empty,
    ),
    optax_private.LABELS: Question(
        "a tree of labels",
        lambda label: f"labelled {label!r}",
        _ADVICE,
        accepts=lambda x: not _is_nothing(x),
        is_answer=_is_empty,
    ),
} | dict.fromkeys(
    optax_private.DIMENSIONS,
    Question(
        "a tree of dimension numbers",
        lambda numbers: f"given {numbers!r}",
        _ADVICE,
        is_answer=lambda x: _is_empty(x) or optax_private.is_dimensions(x),
    ),
)


def fitted(name: str, given: Any) -> Callable[[Any], Any]:
    """A mask, labels or the like as a function that gives a Dag for a Dag.

    Args:
        name: That of `optax_private.TREES`, which says what it is.
    """

    def of_params(params: Any) -> Any:
        is_function = callable(given) and _is_one(given)
        if type(params) is not Dag:
            return given(params) if is_function else given
        untraced, leaves = params._take_apart()
        frozen = optax_private.frozen_by(given)
        if frozen is not None:
            flags = fitted(optax_private.FLAGS, frozen)(params)
            return optax_private.with_frozen(given, flags)(params)
        question = _QUESTIONS[name]
        if is_function:
            found = _of_function(given, untraced, leaves, question)
        else:
            found = _of_answer(given, untraced, leaves, question)
        # What takes no part stays what it is: JAX sees no leaf there.
        pairs = zip(found, leaves, strict=True)
        return rebuilt(untraced, [a if is_leaf(x) else x for a, x in pairs])

    return of_params


def refusing_masks(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that an optimizer calls, which must not be one that makes a mask.

    It would have got a `Dag`, which doesn't show each path of a tied leaf.

    Args:
        name: Under which optax holds it: not one of `optax_private.TREES`.
    """

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        answer = function(*args, **kwargs)
        if type(answer) is Dag and any(type(x) is Dag for x in (*args, *kwargs.values())):
            leaves = answer._take_apart()[1]
            if leaves and all(isinstance(x, bool | np.bool_ | str) for x in leaves):
                raise TypeError(
                    f"{function.__qualname__} makes a mask or labels, and this release of optax "
                    f"holds it under a name that pydag doesn't know: {name!r}\n"
                    "  It would have to be given the model with each path of a tied leaf. Give "
                    "optax the mask itself, such as pydag.dag_mask(model, where), or a release "
                    "that pydag knows."
                )
        return answer

    return checked


def _of_function(
    function: Callable[[Any], Any], untraced: Untraced, leaves: Sequence[Leaf], question: Question
) -> list[Any]:
    """What a function says of each leaf of a model.

    Raises:
        Exception: What it raised for the model in the first of the forms that it may have.
    """
    first: Exception | None = None
    for model in models_for_functions(untraced, leaves):
        try:
            answer = model.ask(function)
        except Exception as error:
            first = first or error
            continue
        return _joined(answer, untraced, leaves, question)
    assert first is not None
    raise first


def _joined(
    answer: Any, untraced: Untraced, leaves: Sequence[Leaf], question: Question
) -> list[Any]:
    """The answer of a function for each leaf. A mask selects a leaf by any of its paths."""
    try:
        return _of_answer(answer, untraced, leaves, question)
    except SharingError as error:
        if question is not _QUESTIONS[optax_private.FLAGS]:
            raise
        _tell(str(error))
    selected: set[int] = set()

    def any_counts(first: Any, second: Any, leaf: Leaf) -> bool:
        if not _are_flags_one(first, second, leaf):
            selected.add(id(leaf))
        return True

    either = question._replace(are_one=any_counts)
    return _of_tree(untraced, leaves, answer, either, selected)


def _of_answer(
    answer: Any, untraced: Untraced, leaves: Sequence[Leaf], question: Question
) -> list[Any]:
    """The answer for each leaf of a model, from a `Dag`, a tree or a prefix."""
    if type(answer) is Dag:
        own, found = answer._take_apart()
        if own.content == untraced.content:
            return list(found)
    return _of_tree(untraced, leaves, answer, question)


def _is_one(given: Any) -> bool:
    """Whether this is a function, and no tree: some modules can be called, too."""
    return not isinstance(given, Dag) and one_level(given, Options())[2].is_leaf()


def _of_tree(
    untraced: Untraced,
    leaves: Sequence[Leaf],
    answer: Any,
    question: Question,
    selected: Container[int] = (),
) -> list[Any]:
    """The answer for each leaf of a model, from a tree or a prefix.

    Args:
        selected: The ids of leaves for which the answer is True.
    """
    stand_ins = list(map(_stand_in, leaves))
    positions = untraced.traced_positions()
    only = frozenset(p for p, x in zip(positions, leaves, strict=True) if is_leaf(x))
    tree = untraced.build(stand_ins)
    if type(answer) is Dag:
        try:
            answer = answer.tree
        except Exception:  # a class may refuse answers: nodes of ours stand for its objects
            own, found = answer._take_apart()
            tree = _core.unflatten(with_own_nodes(untraced.spec), untraced.all_leaves(stand_ins))
            answer = _core.unflatten(with_own_nodes(own.spec), own.all_leaves(found))
    found = treatments({_ROOT: tree}, {_ROOT: answer}, question, untraced.options, only)
    pairs = zip(positions, stand_ins, strict=True)
    return [id(stand_in) in selected or found[p] for p, stand_in in pairs]


def _stand_in(leaf: Leaf) -> Any:
    """An array of the same form that is no other's: leaves may be one object, such as a number."""
    shape, dtype = getattr(leaf, "shape", ()), getattr(leaf, "dtype", None)
    one = np.zeros((), dtype if isinstance(dtype, np.dtype) else None)
    return np.broadcast_to(one, shape)


def _tell(difference: str) -> None:
    """Warns, at the line of the user's call, of a mask with two answers for a shared leaf."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(f"{difference}\n  Here True counts, at whichever path.", stacklevel=level)


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in ("pydag", "optax", "jax", "contextlib", "functools")
