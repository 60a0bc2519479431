# SPDX-License-Identifier: Apache-2.0
"""One treatment for each object, at every path, read from a tree prefix."""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

import pydag._core as _core
from pydag.errors import SharingError
from pydag.jaxinterop.content.content import Content
from pydag.jaxinterop.content.options import CALL, Options, Roots, path_texts
from pydag.typing import Dag, Leaf

COPIES = (
    "pydag.untie(tree) gives each place its own copy; "
    'with identity="nodes" an array at two places counts as two.'
)


class Question(NamedTuple):
    """What a prefix answers for each leaf."""

    name: str  # of the argument that has the prefix
    describe: Callable[[Any], str]  # an answer, in words
    is_answer: Callable[[Any], bool] | None = None  # where an answer may itself be a node
    advice: str = COPIES
    normal: Callable[[Any, Leaf], Any] = lambda answer, _: answer  # equal for what is the same


def treatments(
    question: Question,
    prefix: Any,
    tree: Dag,
    content: Content,
    options: Options,
    roots: Roots = CALL,
) -> list[Any]:
    """What a prefix says about each traced leaf of a tree; `SharingError` for two answers."""
    answers, given = answers_in(prefix, options.namespace, question.is_answer)
    spec = content.spec
    if given.is_leaf():
        return [answers[0]] * (spec.num_leaves - len(content.positions))
    # None is a place of its own, so that a prefix may have None there.
    leaves, full = _core.flatten_at(
        tree, "tree", none_is_leaf=True, namespace=options.namespace, identity=options.identity
    )
    try:
        found, conflicts = _core.broadcast_leaves(given, answers, full)
    except ValueError as error:
        text = _with_roots(str(error), roots)
        if "node types" in text:
            text += (
                "\n  The prefix of an object is such an object, or one answer for all of it. Make "
                "it of the object: pydag.dag_map(lambda chosen: 0 if chosen else None, "
                "pydag.dag_mask(obj, 'w'))."
            )
        text = f"{question.name} must be a tree prefix of the corresponding value: {text}"
        raise ValueError(text) from None
    if conflicts:
        by_path = dict(zip(path_texts(full, "tree"), leaves, strict=True))
        # Not the first one alone: it may be about what isn't traced.
        conflicts = [c for c in _core.broadcast_conflicts(given, answers, full) if len(c) == 4]
        _check(conflicts, question, content, roots, by_path)
    found = [answer for answer, leaf in zip(found, leaves, strict=True) if leaf is not None]
    return list(content.traced_among(found))


def answers_in(
    prefix: Any, namespace: str, is_answer: Callable[[Any], bool] | None = None
) -> tuple[list[Any], _core.PyDagSpec]:
    """The answers in a tree prefix, and its structure.

    None is one. An integer or a flag may stand as an array of no dimension.
    """
    form: Any = {"none_is_leaf": True, "namespace": namespace, "identity": "nodes"}
    found, spec = _core.flatten_at(prefix, "tree", is_leaf=is_answer, **form)
    for i, x in enumerate(found):
        if type(x) is np.ndarray and x.ndim == 0 and x.dtype.kind in "biu":
            found[i] = x.item()
    return found, spec


def _check(
    conflicts: Any, question: Question, content: Content, roots: Roots, leaves: Mapping[str, Leaf]
) -> None:
    static = {path_texts(content.spec, "tree")[i] for i in content.positions}
    for one, other, first, second in conflicts:
        a, b = question.describe(first), question.describe(second)
        leaf = leaves[one]
        if leaf is None or a == b or one in static or _plain(first) == _plain(second):
            continue
        if question.normal(first, leaf) == question.normal(second, leaf):
            continue
        raise SharingError(
            f"one object is both {a} and {b}\n  {_with_roots(one, roots)} is {a}\n  "
            f"{_with_roots(other, roots)}, the same object, is {b}\n  {question.advice}"
        )


def _plain(answer: Any) -> Any:
    """An answer in one form: a spec may be written in several ways."""
    spec = getattr(answer, "spec", answer)
    if not isinstance(spec, jax.P):
        return answer
    parts = [part[0] if isinstance(part, tuple) and len(part) == 1 else part for part in spec]
    while parts and parts[-1] is None:
        parts.pop()
    about = [getattr(answer, name, None) for name in ("mesh", "memory_kind", "unreduced")]
    return (type(answer), *about, *parts)


def _with_roots(text: str, roots: Roots) -> str:
    if isinstance(roots, str):
        return re.sub(r"(^|\n  at )tree\b", rf"\1{roots}", text)
    for number, root in enumerate(roots):
        text = text.replace(f"tree[{number}]", root)
    return text
