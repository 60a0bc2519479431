# SPDX-License-Identifier: Apache-2.0
"""What broadcasting a prefix means, in obvious Python: every path is followed.

Each object of the full structure collects answers on the way: a node of the prefix, or that
it keeps its own, and, for a leaf, an answer. All answers for one object must be the same.
"""

from typing import Any

import reference as ref
from reference_kinds import Shape, build_node, one_answer
from reference_specs import Token, slots

Heads = dict[ref.SpecNode, list[Shape]]
Answers = dict[ref.SpecNode, list[Any]]


def told(prefix: ref.Spec, full: ref.Spec) -> tuple[Heads, Answers]:
    """The answers for each object of the full structure; `ValueError` if the prefix doesn't fit."""
    heads: Heads = {}
    answers: Answers = {}

    def cover(y: ref.SpecNode, answer: Any) -> None:
        if y.shape is None:
            answers.setdefault(y, []).append(answer)
        else:
            heads.setdefault(y, []).append(y.shape)
        for child in y.children:
            cover(child, answer)

    def visit(x: ref.SpecNode, y: ref.SpecNode) -> None:
        if x.shape is None:
            cover(y, x.obj)
            return
        if y.shape is None:
            raise ValueError("a node stands for a leaf")
        heads.setdefault(y, []).append(x.shape)
        for pair in slots(x, y):
            visit(*pair)

    visit(prefix.root, full.root)
    return heads, answers


def is_alike(a: Shape, b: Shape) -> bool:
    """Whether two heads of one object are the same node; the order of a dict doesn't count."""
    is_ordered = a.cls.__name__ == "OrderedDict" or a.kind != "dict"
    same_entries = a.entries == b.entries if is_ordered else set(a.entries) == set(b.entries)
    return a.cls is b.cls and a.aux == b.aux and same_entries


def is_conflict(heads: Heads, answers: Answers, registry: Any) -> bool:
    """Whether an object has two different answers."""
    return any(not is_alike(each[0], other) for each in heads.values() for other in each) or any(
        not one_answer(each[0], other, registry) for each in answers.values() for other in each
    )


def broadcast_prefix(prefix: ref.Spec, full: ref.Spec) -> tuple[Any, list[Any]]:
    """A tree with a token in the place of each leaf, and what stands there.

    Raises:
        SharingError: An object has two different answers.
    """
    heads, answers = told(prefix, full)
    if is_conflict(heads, answers, full.registry):
        raise ref.SharingError
    memo: dict[ref.SpecNode, Any] = {}
    values: list[Any] = []

    def build(y: ref.SpecNode) -> Any:
        if y in memo:
            return memo[y]
        if y.shape is None:
            values.append(answers[y][0])
            memo[y] = Token()
            return memo[y]
        head = heads[y][0]
        children = dict(zip(y.shape.entries, y.children, strict=True))
        if head.kind in ("dict", "fields"):
            built = [build(children[entry]) for entry in head.entries]
        else:
            built = [build(child) for child in y.children]
        memo[y] = build_node(head, built)
        return memo[y]

    return build(full.root), values


def answers_of_leaves(prefix: ref.Spec, full: ref.Spec) -> list[Any]:
    """The answer for each leaf of the full structure, in its order.

    Raises:
        SharingError: One has two different answers.
    """
    _, answers = told(prefix, full)
    if is_conflict({}, answers, full.registry):
        raise ref.SharingError
    by_place = {leaf.leaf: found[0] for leaf, found in answers.items()}
    return [by_place[place] for place in range(full.num_leaves)]
