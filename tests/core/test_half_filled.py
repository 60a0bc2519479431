# SPDX-License-Identifier: Apache-2.0
"""Tuples that somebody is still filling, found through the collector and handed to the core.

To look at an item that isn't there is a crash, so each program runs in an interpreter of its own.
"""

import re
import sys

import pytest
from operations import run_apart

pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 14),
    reason="3.14 makes tuples in one go: nobody sees half of one",
)

HALF = """
import gc
import pydag
from pydag import Node

class Tagged:
    def __init__(self, *c): self.c = c
answers = []
pydag.register_pydag_node(Tagged, lambda t: answers[-1], lambda a, c: Tagged(*c))
@pydag.register_fields(data_fields=("a",), meta_fields=("m",))
class Fields: pass
fields = Fields()
fields.a, fields.m = 1, 2

def with_half(first, size, use):
    "Calls `use` with a tuple of this size that has its first item only."
    class Source:
        def __length_hint__(self): return size
        def __iter__(self):
            yield first
            [half] = [t for t in gc.get_objects() if type(t) is tuple and len(t) == size
                      and len(gc.get_referents(t)) < size and t[0] is first]
            try: print(use(half))
            except (ValueError, TypeError) as error:
                print(type(error).__name__, str(error).splitlines()[0][:70])
            yield from [None] * (size - 1)
    tuple(Source())

def flatten_as(answer):
    answers.append(answer)
    return pydag.dag_flatten([Tagged()])
"""


def run(cases: str) -> list[str]:
    """What the programs print, one line each; `x` stands for the item that is there."""
    source = f"x = object()\nfor use in ({cases}):\n    with_half(x, 2, use)\n"
    return run_apart(HALF + source).splitlines()


REFUSED = "ValueError a list or tuple that isn't filled yet can't be used"


def test_answers_of_flatten_functions() -> None:
    """The tuple is refused as result, children or entries; aux_data isn't looked into."""
    cases = """
    flatten_as, lambda h: flatten_as((h, None)), lambda h: flatten_as(((1, 2), None, h)),
    lambda h: flatten_as(((1, 2), h))[0]"""
    assert run(cases) == [REFUSED] * 3 + ["[1, 2]"]


def test_trees() -> None:
    """Every walk, the fast ones included, refuses the tuple as a tree, or within one."""
    cases = """
    pydag.dag_flatten, pydag.dag_leaves, pydag.dag_copy, pydag.deref, pydag.shared_objects,
    lambda h: pydag.dag_leaves(h, lambda _: False),
    lambda h: [pydag.dag_leaves([1, ([1], 2)]), pydag.dag_leaves([1, h])],
    lambda h: pydag.dag_map(lambda x, y: 0, (1, 2), h),
    lambda h: pydag.dag_structure([(1, 2), (3, 4)]).flatten_up_to([(1, 2), h]),
    lambda h: pydag.dag_update([(1, 2)], [h]),
    lambda h: pydag.reref(Node(Fields, (("a",), (1,)), h))"""
    assert run(cases) == [REFUSED] * 11


def test_leaves() -> None:
    """The tuple is refused as the leaves; as a leaf it passes until it is compared."""
    cases = """
    lambda h: pydag.dag_unflatten(pydag.dag_structure([1, 2]), h),
    lambda h: pydag.dag_map(lambda x, y: 0, [x, x], [h, (x, 1)]),
    lambda h: len(pydag.dag_map(lambda x, y: 0, [1, 2], [h, h]))"""
    answers = run(cases)
    assert answers == [REFUSED, REFUSED, "2"]


def test_paths_and_nodes() -> None:
    """The tuple is refused as a path, or as what a Node says of its class."""
    cases = """
    lambda h: pydag.tie({"a": [1], "b": 2}, h, ("b",)),
    lambda h: pydag.reref(Node(Fields, h, (1,))),
    lambda h: pydag.reref(Node(Fields, (h, (2,)), (1, 2))),
    lambda h: pydag.reref(Node(Fields, (("a",), h), (1,)))"""
    answers = run(cases)
    assert answers[0] == REFUSED
    assert [a[:43] for a in answers[1:]] == ["ValueError the Node at tree doesn't fit the"] * 3


def test_messages() -> None:
    """A message shows it as what it is."""
    shown = "<tuple of 2 that isn't filled yet>"
    cases = """
    lambda h: pydag.dag_structure([1]).flatten_up_to(h),
    lambda h: pydag.dag_structure([1]).flatten_up_to({7: h}),
    lambda h: pydag.dag_flatten([1], is_leaf=h), lambda h: pydag.dag_flatten([1], identity=h),
    lambda h: pydag.dag_unflatten(h, [])"""
    answers = run(cases)
    assert [shown[:20] in answer for answer in answers] == [True] * 5


def test_state_of_a_spec() -> None:
    """The tuple is refused in the place of any tuple of a pickled state."""
    source = """
answers.append(((1, 2), None, ("p", "q")))
state = pydag.dag_structure([{"b": fields, "a": 2}, Tagged()]).__getstate__()
def replaced(value, old, new):
    if value is old: return new
    return tuple(replaced(v, old, new) for v in value) if type(value) is tuple else value
def tuples(value):
    if type(value) is tuple:
        yield from [value] if len(value) > 1 else []
        for item in value: yield from tuples(item)
for part in tuples(state):
    def restore(half):
        return pydag.PyDagSpec.__new__(pydag.PyDagSpec).__setstate__(replaced(state, part, half))
    with_half(part[0], len(part), restore)
"""
    answers = run_apart(HALF + source).splitlines()
    malformed = r"ValueError malformed state of a PyDagSpec: (nodes\[\d\]: )?(refs\[\d\]: )?"
    assert answers[0].startswith("TypeError the state of a PyDagSpec must be a tuple of six")
    assert [re.sub(malformed, "", a)[:19] for a in answers[1:]] == [
        "references must be ",
        "keys must be a pair",
        "keys must be a tupl",
        "there must be one r",
        "a registration must",
        "keys must be a pair",
        "a registration must",
        "entries must be Non",
    ]


def test_records_of_a_spec() -> None:
    """The tuple is refused in the place of any tuple of a spec's records."""
    source = """
from pydag import _core
arguments = (False, "", (("dict", False, 1, 0), ("leaf", False, 0)), ((("a",), None),))
def replaced(value, old, new):
    if value is old: return new
    return tuple(replaced(v, old, new) for v in value) if type(value) is tuple else value
for part in (arguments[2], arguments[2][0], arguments[3][0]):
    def make(half):
        return _core.spec_from_nodes(*replaced(arguments, part, half))
    with_half(part[0], len(part), make)
"""
    answers = run_apart(HALF + source).splitlines()
    assert [answer[:43] for answer in answers] == [
        "TypeError rows: expected a tuple",
        "ValueError nodes[0]: expected a tuple (kind",
        "ValueError nodes[0]: refs[0]: keys must be ",
    ]
