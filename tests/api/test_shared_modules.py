"""Modules that hold one module together: the case that pydag was asked for.

Two towers look words up in one embedding. Flattening and unflattening such a model
must give two towers over one *new* embedding. Beside that case stand the containers,
the `deref` and `reref` round trip and the `is_leaf` predicates that were tried for it.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import optree
import pytest

import pydag

Copier = Callable[[Any], Any]
Register = Callable[[type], object]


def register_with_fields(cls: type) -> None:
    """Makes the attributes of `cls` its children."""
    pydag.register_fields(cls)


def register_with_callbacks(cls: type) -> None:
    """The same by a flatten and an unflatten function."""

    def flatten(module: Any) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        return tuple(vars(module).values()), tuple(vars(module))

    def unflatten(names: tuple[str, ...], children: Any) -> Any:
        module: Any = object.__new__(cls)
        vars(module).update(zip(names, children, strict=True))
        return module

    pydag.register_pydag_node(cls, flatten, unflatten)


def bare_two_towers(register: Register) -> Any:
    """Two towers over one embedding without weights; a class is registered as it is made."""

    class Module:
        def __init_subclass__(cls) -> None:
            super().__init_subclass__()
            register(cls)

    class Embedding(Module):
        pass

    class Tower(Module):
        def __init__(self, embedding: Embedding) -> None:
            self.embedding = embedding

    class TwoTowers(Module):
        def __init__(self, query: Tower, document: Tower) -> None:
            self.query = query
            self.document = document

    embedding = Embedding()
    return TwoTowers(Tower(embedding), Tower(embedding))


both_registrations = pytest.mark.parametrize(
    "register", [register_with_fields, register_with_callbacks]
)


@both_registrations
def test_a_module_of_two_parents_stays_one(register: Register) -> None:
    """Towers that shared an embedding share the rebuilt one."""
    leaves, spec = pydag.dag_flatten(bare_two_towers(register))
    rebuilt = pydag.dag_unflatten(spec, leaves)
    assert rebuilt.query.embedding is rebuilt.document.embedding


@both_registrations
def test_identity_is_relative(register: Register) -> None:
    """What is rebuilt is new: no module of the original stands in it."""
    model = bare_two_towers(register)
    leaves, spec = pydag.dag_flatten(model)
    rebuilt = pydag.dag_unflatten(spec, leaves)
    assert rebuilt is not model
    assert rebuilt.query is not model.query
    assert rebuilt.document is not model.document
    assert rebuilt.query.embedding is not model.query.embedding
    assert rebuilt.document.embedding is not model.document.embedding


@both_registrations
def test_modules_that_were_two_stay_two(register: Register) -> None:
    """Towers are equal in all but identity, and aren't merged."""
    leaves, spec = pydag.dag_flatten(bare_two_towers(register))
    rebuilt = pydag.dag_unflatten(spec, leaves)
    assert rebuilt.query is not rebuilt.document


@both_registrations
def test_unflattening_twice_gives_separate_models(register: Register) -> None:
    """One spec builds any number of models, each tied in itself and to no other."""
    model = bare_two_towers(register)
    leaves, spec = pydag.dag_flatten(model)
    first = pydag.dag_unflatten(spec, leaves)
    second = pydag.dag_unflatten(spec, spec.flatten_up_to(model))
    assert second is not first
    assert second.query is not second.document
    assert second.query.embedding is second.document.embedding
    assert second.query.embedding is not first.query.embedding
    assert second.document.embedding is not first.document.embedding


@both_registrations
def test_a_tuple_of_one_module_twice(register: Register) -> None:
    """The outermost container need not be a registered one to see that its items are one."""
    module = bare_two_towers(register).query
    leaves, spec = pydag.dag_flatten((module, module))
    left, right = pydag.dag_unflatten(spec, leaves)
    again_left, again_right = pydag.dag_unflatten(spec, spec.flatten_up_to((module, module)))
    assert left is right
    assert again_left is again_right
    assert again_left is not left
    assert left is not module


class Module:
    """Each subclass is a node: its attributes are the children."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        pydag.register_fields(cls)


class Embedding(Module):
    """A table of vectors, one row a word."""

    def __init__(self, table: Any) -> None:
        self.table = table


class Tower(Module):
    """Scores by way of an embedding that it need not be alone in holding."""

    def __init__(self, embedding: Embedding, scale: Any) -> None:
        self.embedding = embedding
        self.scale = scale


class TwoTowers(Module):
    """A query and a document tower."""

    def __init__(self, query: Tower, document: Tower) -> None:
        self.query = query
        self.document = document


def two_towers() -> TwoTowers:
    """Two towers of different scale over one embedding, with weights."""
    embedding = Embedding(np.arange(6.0).reshape(3, 2))
    return TwoTowers(Tower(embedding, np.array(0.5)), Tower(embedding, np.array(2.0)))


def test_a_shared_weight_is_one_leaf() -> None:
    """The table that both towers hold comes once, at the place of its first visit."""
    model = two_towers()
    leaves = pydag.dag_leaves(model)
    assert [id(leaf) for leaf in leaves] == [
        id(model.document.embedding.table),
        id(model.document.scale),
        id(model.query.scale),
    ]


def test_flatten_up_to_gives_the_leaves_of_flatten() -> None:
    """A spec takes from its own tree the very leaves that flattening took."""
    model = two_towers()
    leaves, spec = pydag.dag_flatten(model)
    again = spec.flatten_up_to(model)
    assert [id(leaf) for leaf in again] == [id(leaf) for leaf in leaves]


def pickled(tree: Any) -> Any:
    """`tree` written down and read back."""
    return pickle.loads(pickle.dumps(tree))


@pytest.mark.parametrize("copier", [copy.deepcopy, pickled, pydag.dag_copy])
def test_pickle_and_deepcopy_keep_the_same_identities(copier: Copier) -> None:
    """pydag does to a shared module what Python's own copying machinery has always done."""
    model = two_towers()
    copied = copier(model)
    assert copied.query.embedding is copied.document.embedding
    assert copied.query.embedding is not model.query.embedding
    assert copied.query is not copied.document


def test_a_class_may_decline_identity() -> None:
    """Objects registered without identity come back apart, one for each place."""

    class Token:
        pass

    pydag.register_pydag_node(
        Token, lambda _: ((), None), lambda _, __: Token(), preserve_relative_identities=False
    )
    token = Token()
    left, right = pydag.dag_map(abs, [token, token])
    assert left is not right


def test_a_class_of_fields_may_decline_identity() -> None:
    """`register_fields` takes the flag too; what lies below keeps its own identity."""

    class Scale:
        def __init__(self, factor: Any) -> None:
            self.factor = factor

    pydag.register_fields(Scale, preserve_relative_identities=False)
    scale = Scale(np.ones(2))
    left, right = pydag.dag_map(np.negative, [scale, scale])
    assert left is not right
    assert left.factor is right.factor


def test_a_decorated_class_may_decline_identity() -> None:
    """The decorator takes the flag as well as the function does."""

    @pydag.register_pydag_node_class(
        namespace="decline-identity", preserve_relative_identities=False
    )
    class Token:
        def tree_flatten(self) -> tuple[tuple[()], None]:
            return (), None

        @classmethod
        def tree_unflatten(cls, aux_data: None, children: Any) -> Token:
            return cls()

    token = Token()
    left, right = pydag.dag_map(abs, [token, token], namespace="decline-identity")
    assert left is not right


# Containers and modules that are registered with callbacks.


class Group:
    """A tuple under another name, known through callbacks alone."""

    def __init__(self, *members: Any) -> None:
        self.members = members

    def __iter__(self) -> Iterator[Any]:
        return iter(self.members)


class Marker:
    """A module without anything in it."""


class Layer:
    """A module with one parameter."""

    def __init__(self, weight: Any) -> None:
        self.weight = weight


class Pin(NamedTuple):
    """A namedtuple without fields; registered with identity in the namespace `pinned` alone."""


pydag.register_pydag_node(
    Group, lambda group: (group.members, None), lambda _, members: Group(*members)
)
pydag.register_pydag_node(Marker, lambda _: ((), None), lambda _, __: Marker())
pydag.register_pydag_node(
    Layer, lambda layer: ((layer.weight,), None), lambda _, children: Layer(children[0])
)


def test_a_registered_container_holds_one_module_twice() -> None:
    """A callback sees one level at a time, and still both members come back as one."""
    marker = Marker()
    group = Group(marker, marker)
    leaves, spec = pydag.dag_flatten(group)
    first, second = pydag.dag_unflatten(spec, leaves)
    third, fourth = pydag.dag_unflatten(spec, spec.flatten_up_to(group))
    assert first is second
    assert third is fourth
    assert first is not third
    assert second is not fourth
    assert first is not marker
    assert second is not marker


def test_a_module_shared_across_nested_containers() -> None:
    """Identity spans the whole tree: no container could have seen this by itself."""
    marker = Marker()
    leaves, spec = pydag.dag_flatten(Group(Group(marker, marker), Group(marker, marker)))
    left, right = pydag.dag_unflatten(spec, leaves)
    members = [*left, *right]
    assert all(member is members[0] for member in members)
    assert members[0] is not marker
    assert left is not right


def test_a_module_with_a_parameter_in_a_registered_container() -> None:
    """The shared module is opened once, so that its parameter is the only leaf."""
    layer = Layer(0)
    group = Group(layer, layer)
    leaves, spec = pydag.dag_flatten(group)
    first, second = pydag.dag_unflatten(spec, leaves)
    third, fourth = pydag.dag_unflatten(spec, spec.flatten_up_to(group))
    assert leaves == [0]
    assert first is second
    assert third is fourth
    assert first is not third
    assert first is not layer
    assert first.weight == 0


def test_each_callback_runs_once_per_object() -> None:
    """Neither function is called for a second path to one object."""
    calls: list[str] = []

    class Counted:
        pass

    def flatten(counted: Counted) -> tuple[tuple[int, ...], None]:
        calls.append("flatten")
        return (1,), None

    def unflatten(aux_data: None, children: Any) -> Counted:
        calls.append("unflatten")
        return Counted()

    pydag.register_pydag_node(Counted, flatten, unflatten)
    counted = Counted()
    pydag.dag_map(abs, Group(Group(counted, counted), counted))
    assert calls == ["flatten", "unflatten"]


def test_a_namedtuple_is_a_value_until_it_is_registered() -> None:
    """Tuples have no identity of their own: each occurrence is rebuilt."""
    pin = Pin()
    leaves, spec = pydag.dag_flatten(Group(pin, pin))
    first, second = pydag.dag_unflatten(spec, leaves)
    assert first is not second


@pytest.mark.filterwarnings("ignore:PyTree type")
def test_a_registered_namedtuple_keeps_its_identity() -> None:
    """Registering a namedtuple is how to ask for it."""
    pydag.register_pydag_node(Pin, lambda _: ((), None), lambda _, __: Pin(), namespace="pinned")
    pin = Pin()
    leaves, spec = pydag.dag_flatten(Group(pin, pin), namespace="pinned")
    first, second = pydag.dag_unflatten(spec, leaves)
    assert first is second
    assert first is not pin
    pydag.unregister_pydag_node(Pin, namespace="pinned")


# Noise on shared arrays: `deref`, an ordinary map, `reref`; and `dag_map`, which is all three.


class Noise:
    """Adds a random number, another one at each call, and counts the calls."""

    def __init__(self) -> None:
        self.generator = np.random.default_rng(0)
        self.calls = 0

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        return x + self.generator.normal()


def two_arrays_at_four_places() -> Any:
    """Two arrays of equal content: one stands at two places, and so does the other."""
    first, second = np.array(0.0), np.array(0.0)
    return {"x": [first, first, second], "y": second}


def assert_tied_in_pairs(tree: Any) -> None:
    """Asserts that `tree` shares as `two_arrays_at_four_places` does."""
    assert tree["x"][0] is tree["x"][1]
    assert tree["x"][2] is tree["y"]
    assert tree["x"][0] is not tree["y"]


def test_dag_map_adds_one_noise_to_one_array() -> None:
    """The function runs once for each distinct array, and places that were tied stay tied."""
    noise = Noise()
    noisy = pydag.dag_map(noise, two_arrays_at_four_places())
    assert noise.calls == 2
    assert_tied_in_pairs(noisy)
    assert noisy["x"][0] != noisy["y"]


def test_an_ordinary_map_unties() -> None:
    """optree's map, for comparison, gives four numbers where there were two arrays."""
    noise = Noise()
    noisy = optree.tree_map(noise, two_arrays_at_four_places())
    assert noise.calls == 4
    assert noisy["x"][0] != noisy["x"][1]
    assert noisy["x"][2] != noisy["y"]


def test_an_ordinary_map_between_deref_and_reref_keeps_ties() -> None:
    """A derefed tree holds each array once, and `reref` puts the result at all its places."""
    noise = Noise()
    derefed = pydag.deref(two_arrays_at_four_places())
    noisy = pydag.reref(optree.tree_map(noise, derefed))
    assert noise.calls == 2
    assert_tied_in_pairs(noisy)
    assert noisy["x"][0] != noisy["y"]


def test_deref_puts_a_value_at_the_anchor_and_a_number_at_each_alias() -> None:
    """The first place of an array holds it; each later one refers to it by index."""
    tree = two_arrays_at_four_places()
    derefed = pydag.deref(tree)
    first, first_again, second = derefed["x"]
    second_again = derefed["y"]
    assert isinstance(first, pydag.Anchor)
    assert isinstance(second, pydag.Anchor)
    assert isinstance(first_again, pydag.Alias)
    assert isinstance(second_again, pydag.Alias)
    assert first.value is tree["x"][0]
    assert second.value is tree["y"]
    assert [first.index, first_again.index, second.index, second_again.index] == [0, 0, 1, 1]


def test_reref_undoes_deref() -> None:
    """The round trip alone changes nothing about what is tied to what."""
    assert_tied_in_pairs(pydag.reref(pydag.deref(two_arrays_at_four_places())))


def test_deref_keeps_the_identity_of_containers_too() -> None:
    """A list at two places is one list after the round trip, not two equal ones."""
    inner = [np.array(0.0)]
    tree = pydag.reref(pydag.deref({"x": inner, "y": [inner, inner]}))
    assert tree["x"] is tree["y"][0]
    assert tree["x"] is tree["y"][1]
    assert tree["x"] is not inner


def test_deref_keeps_the_identity_of_modules_too() -> None:
    """An embedding that two towers hold is one after the round trip."""
    model = pydag.reref(pydag.deref(two_towers()))
    assert model.query.embedding is model.document.embedding
    assert model.query is not model.document


# Predicates that keep an object whole.


def is_embedding(x: object) -> bool:
    """Tells whether `x` is to be kept whole."""
    return isinstance(x, Embedding)


def test_an_object_kept_whole_is_one_leaf() -> None:
    """`is_leaf` hands the shared object out unopened, once, and it may stand at all places."""
    model = two_towers()
    leaves, spec = pydag.dag_flatten(model, is_leaf=is_embedding)
    rebuilt = pydag.dag_unflatten(spec, leaves)
    assert len(leaves) == 3
    assert leaves[0] is model.query.embedding
    assert rebuilt.query.embedding is model.query.embedding
    assert rebuilt.document.embedding is model.query.embedding


def test_a_map_over_objects_kept_whole() -> None:
    """The function gets the object itself, once, and its result is shared as the object was."""
    seen: list[object] = []

    def label(leaf: object) -> Any:
        seen.append(leaf)
        return [type(leaf).__name__]

    model = two_towers()
    labels: Any = pydag.dag_map(label, model, is_leaf=is_embedding)
    assert [id(leaf) for leaf in seen] == [
        id(model.document.embedding),
        id(model.document.scale),
        id(model.query.scale),
    ]
    assert labels.query.embedding == ["Embedding"]
    assert labels.query.embedding is labels.document.embedding


def test_the_predicate_is_asked_once_per_object() -> None:
    """`is_leaf` sees each object before it is opened, and no object twice."""
    asked: list[str] = []

    def never(x: object) -> bool:
        asked.append(type(x).__name__)
        return False

    pydag.dag_leaves(two_towers(), is_leaf=never)
    assert asked == ["TwoTowers", "Tower", "Embedding", "ndarray", "ndarray", "Tower", "ndarray"]


def test_the_predicate_decides_what_the_structure_is() -> None:
    """Keeping an object whole gives another spec than opening it does."""
    model = two_towers()
    opened = pydag.dag_structure(model)
    whole = pydag.dag_structure(model, is_leaf=is_embedding)
    assert opened != whole


def test_deref_takes_the_predicate() -> None:
    """An object kept whole is anchored as it is, and comes back at all its places."""
    embedding = two_towers().query.embedding
    derefed = pydag.deref({"a": embedding, "b": embedding}, is_leaf=is_embedding)
    assert derefed["a"].value is embedding
    rerefed = pydag.reref(derefed)
    assert rerefed["a"] is rerefed["b"]
