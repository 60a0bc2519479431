# SPDX-License-Identifier: Apache-2.0
"""Where nothing is shared, functions do what optree's do: results, calls, errors, signatures."""

import operator
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any

import optree
import pytest
import specimens as sp
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from isomorphism import difference
from side_by_side import PEER, PEERS, Peer, disagreement, first_line
from strategies import Predicate, thorough

import pydag

KNOWN_TO_BOTH = strategies.BUILTIN + strategies.CUSTOM + strategies.FRESH
Options = dict[str, Any]
Call = Callable[[Peer, Any, Options, list[Any]], Any]

# Trees, and the namespaces in which both libraries open the same classes of theirs.
trees = st.tuples(strategies.trees(KNOWN_TO_BOTH), st.just(PEER)) | st.tuples(
    strategies.trees(strategies.BUILTIN), st.sampled_from(["", PEER])
)


def logged(seen: list[Any], answer: Callable[..., Any] = lambda *row: row) -> Callable[..., Any]:
    """A function that notes what it is called with."""

    def function(*row: Any) -> Any:
        seen.append(row)
        return answer(*row)

    return function


def one_level(peer: Peer, tree: Any, options: Options) -> Any:
    """What a spec says of one node, and what is built of it again."""
    found = peer.flatten_one_level(tree, **options)
    built = found.unflatten_func(found.metadata, [*found.children])
    kind, entry = found.kind, found.path_entry_type
    return [found.children, str(found.metadata), found.entries, found.type, kind, entry, built]


def map_two(peer: Peer, tree: Any, options: Options, seen: list[Any]) -> Any:
    """A rest is opened from its first child on, in optree from its last: that isn't compared."""
    result = peer.map_(logged(seen), tree, tree, **options)
    sp.EVENTS.clear()
    return result


def partition(peer: Peer, tree: Any, options: Options, seen: list[Any]) -> Any:
    """A node in which pydag has put None is opened once more: that isn't compared."""
    is_int = logged(seen, lambda x: isinstance(x, int))
    result = peer.partition(is_int, tree, **options)
    sp.EVENTS.clear()
    return result


CALLS: dict[str, Call] = {
    "iter": lambda peer, tree, options, seen: list(peer.iter(tree, **options)),
    "is_leaf": lambda peer, tree, options, seen: peer.is_leaf(tree, **options),
    "all_leaves": lambda peer, tree, options, seen: peer.module.all_leaves(
        [1, tree, None], **options
    ),
    "all_leaves of leaves": lambda peer, tree, options, seen: peer.module.all_leaves(
        peer.leaves(tree, **options), **options
    ),
    "flatten_one_level": lambda peer, tree, options, seen: one_level(peer, tree, options),
    "map_": lambda peer, tree, options, seen: peer.map_(logged(seen), tree, **options),
    "map_ of two": lambda peer, tree, options, seen: map_two(peer, tree, options, seen),
    "map_with_path_": lambda peer, tree, options, seen: peer.map_with_path_(
        logged(seen), tree, **options
    ),
    "map_with_accessor_": lambda peer, tree, options, seen: peer.map_with_accessor_(
        logged(seen), tree, **options
    ),
    "replace_nones": lambda peer, tree, options, seen: peer.replace_nones(
        0, tree, options["namespace"]
    ),
    "partition": lambda peer, tree, options, seen: partition(peer, tree, options, seen),
    "partition with a filling": lambda peer, tree, options, seen: peer.partition(
        logged(seen, lambda x: x is None), tree, fillvalue=..., **options
    ),
    "reduce": lambda peer, tree, options, seen: peer.reduce(logged(seen), tree, **options),
    "reduce from": lambda peer, tree, options, seen: peer.reduce(
        logged(seen, lambda so_far, x: so_far + 1), tree, 0, **options
    ),
    "sum": lambda peer, tree, options, seen: repr(peer.sum(tree, **options)),
    "sum of text": lambda peer, tree, options, seen: peer.sum(tree, "start", **options),
    "sum of bytes": lambda peer, tree, options, seen: peer.sum(tree, b"start", **options),
    "sum of bytearray": lambda peer, tree, options, seen: peer.sum(
        tree, bytearray(b"s"), **options
    ).decode(),
    "max": lambda peer, tree, options, seen: peer.max(
        tree, key=logged(seen, lambda x: str(type(x))), **options
    ),
    "min": lambda peer, tree, options, seen: peer.min(
        tree, default=0, key=logged(seen, lambda x: str(type(x))), **options
    ),
    "min without a key": lambda peer, tree, options, seen: peer.min(tree, **options),
    "all": lambda peer, tree, options, seen: peer.all(tree, **options),
    "any": lambda peer, tree, options, seen: peer.any(tree, **options),
}


UNASKED = ("replace_nones", "flatten_one_level")


@pytest.mark.parametrize("name", CALLS)
@settings(thorough, max_examples=thorough.max_examples // 4)
@given(trees, st.booleans(), strategies.predicates, st.booleans())
def test_trees_are_as_in_optree(
    name: str, drawn: tuple[Any, str], none_is_leaf: bool, predicate: Predicate, asks: bool
) -> None:
    """The same result, the same calls in order, the same error with the same first line."""
    tree, namespace = drawn
    options: Options = {"none_is_leaf": none_is_leaf, "namespace": namespace}
    seen: dict[Peer, tuple[list[Any], Predicate]] = {}

    def call(peer: Peer) -> Any:
        rows: list[Any] = []
        asked = predicate.again()
        seen[peer] = rows, asked
        # How a container that is kept whole is shown in a message: ERRORS has examples.
        more = {"is_leaf": asked} if asks and name not in UNASKED else {}
        return CALLS[name](peer, tree, options | more, rows)

    assert disagreement(call) == ""
    (rows, asked), (our_rows, our_asked) = (seen[PEERS[name]] for name in ("theirs", "ours"))
    assert difference(our_asked.asked, asked.asked) == ""
    assert list(map(repr, rows)) == list(map(repr, our_rows))


ERRORS: dict[str, Callable[[Peer], Any]] = {
    "a rest of another size": lambda peer: peer.map_(print, [1, 2], [1]),
    "a rest of another class": lambda peer: peer.map_with_path_(print, [1, [2]], [1, (2,)]),
    "a rest with other keys": lambda peer: peer.map_with_accessor_(print, {"a": 1}, {"b": 1}),
    "a rest that is a leaf": lambda peer: peer.map_(print, [1], 1),
    "nothing to reduce": lambda peer: peer.reduce(operator.add, []),
    "nothing to compare": lambda peer: peer.max({}),
    "nothing to compare by a key": lambda peer: peer.min((), key=str),
    "what can't be compared": lambda peer: peer.max([1, "a"]),
    "what can't be added": lambda peer: peer.sum([1, "a"]),
    "what can't be joined": lambda peer: peer.sum(["a", 1], "b"),
    "a leaf opened": lambda peer: peer.flatten_one_level(7),
    "None opened as a leaf": lambda peer: peer.flatten_one_level(None, none_is_leaf=True),
    "a list kept by a predicate": lambda peer: peer.flatten_one_level(
        [1, {"a": (2,)}], is_leaf=lambda x: True
    ),
    "a namedtuple kept": lambda peer: peer.flatten_one_level(
        sp.Point(1, 2), is_leaf=lambda x: True
    ),
    "leaves of no iterable": lambda peer: peer.module.all_leaves(7),
    "a class that is none": lambda peer: peer.module.all_leaves([1], is_leaf=lambda x: 1 / 0),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_as_in_optree(name: str) -> None:
    """What optree refuses is refused, by the same type of error with the same first line."""
    assert disagreement(ERRORS[name]) == ""
    assert ERRORS[name] is not None
    with pytest.raises(Exception) as caught:  # noqa: PT011  # `disagreement` says which
        ERRORS[name](PEERS["ours"])
    assert first_line(caught.value)


@pytest.mark.parametrize(
    "returned", [((1,),), ((1,), None, None, None), ((1, 2), None, ("a",)), ((1, 2), None, [0, 1])]
)
def test_bad_flatten_functions_are_told_as_in_optree(returned: Any) -> None:
    """What a flatten function may return is checked where one level is opened, too."""
    texts = []
    for peer, register in (
        (PEERS["theirs"], optree.register_pytree_node),
        (PEERS["ours"], pydag.register_pydag_node),
    ):
        cls = type("Odd", (), {"__module__": "odd"})
        register(cls, lambda _: returned, lambda _, children: list(children), namespace="odd")
        try:
            found = peer.flatten_one_level(cls(), namespace="odd")
            texts.append(str((found.children, found.metadata, found.entries)))
        except RuntimeError as error:
            texts.append(first_line(error))
    assert texts[0] == texts[1]


def questions(tree: Any) -> Iterator[tuple[str, Any]]:
    """What an iterator does when its predicate raises at each question in turn."""
    for peer in PEERS.values():
        for fails_at in range(8):
            asked: list[Any] = []

            def is_leaf(x: Any, asked: list[Any] = asked, fails_at: int = fails_at) -> bool:
                asked.append(x)
                if len(asked) == fails_at + 1:
                    raise KeyError(x)
                return False

            iterator, found = peer.iter(tree, is_leaf), []
            for _ in range(12):
                try:
                    found.append(next(iterator))
                except (KeyError, StopIteration) as error:
                    found.append(type(error))
            yield peer.prefix, (fails_at, found)


def test_an_iterator_goes_on_behind_an_error() -> None:
    """Behind what a predicate raised for, the iterator has the rest of the leaves, as optree's."""
    told = list(questions([1, {"b": 2, "a": (3,)}, OrderedDict(c=4), deque([5])]))
    assert [what for prefix, what in told if prefix == "dag_"] == [
        what for prefix, what in told if prefix == "tree_"
    ]


def test_an_iterator_is_not_entered_twice() -> None:
    """A predicate that asks the iterator that called it for a leaf gets optree's error."""
    for peer in PEERS.values():
        iterators: list[Any] = []

        def is_leaf(x: Any, iterators: list[Any] = iterators) -> bool:
            if x == 2:
                next(iterators[0])
            return False

        iterators.append(peer.iter([1, 2, [3]], is_leaf))
        assert next(iterators[0]) == 1
        with pytest.raises(RuntimeError) as caught:
            next(iterators[0])
        assert first_line(caught.value) == "RuntimeError: PyTreeIter is already iterating."
        assert list(iterators[0]) == [3]


def test_one_level_of_dicts_says_the_order() -> None:
    """The metadata of a dict, and where it is insertion-ordered, are optree's."""
    for tree in ({"b": 1, "a": 2}, defaultdict(int, b=1, a=2), OrderedDict(b=1, a=2)):
        for mode in (False, True):
            with optree.dict_insertion_ordered(mode, namespace="ordered"):
                told = [
                    str(one_level(peer, tree, {"namespace": "ordered"})) for peer in PEERS.values()
                ]
            assert told[0] == told[1]
