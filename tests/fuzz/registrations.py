# SPDX-License-Identifier: Apache-2.0
"""Classes that are registered, unregistered and die between calls, in several namespaces."""

import gc
import weakref
from typing import Any

import reference as ref
import specimens as sp
from reference_kinds import Callbacks, Fields, Registry
from rounds import Difference, Round, agree, expect, same, scenario

import pydag

SPACES = ["", "one", "two"]


class Classes:
    """Classes of this round, and what is registered of them where."""

    def __init__(self, this: Round) -> None:
        self.this = this
        self.made: list[Any] = []
        self.known: dict[str, dict[type, Callbacks | Fields]] = {space: {} for space in SPACES}

    def make(self) -> None:
        """A new class: a Box, a Module or one with slots."""
        base = self.this.rng.choice([sp.Box, sp.Module, sp.Slotted])
        self.made.append(type(f"Made{len(self.made)}", (base,), {}))

    def register(self) -> None:
        """Registers a class, by functions or by fields, or is refused as it should be."""
        cls, space = self.this.rng.choice(self.made), self.this.rng.choice(SPACES)
        place: Any = {"namespace": space} if space else {}
        is_new = cls not in self.known[space]
        keeps = self.this.often(0.7)
        place["preserve_relative_identities"] = keeps
        try:
            if issubclass(cls, sp.Box):
                entry: Callbacks | Fields = _reversing(cls, keeps, self.this.often(0.5))
                pydag.register_pydag_node(cls, entry.flatten, entry.unflatten, **place)  # type: ignore[union-attr]  # it is one
            else:
                entry = Fields(keeps_identity=keeps)
                pydag.register_fields(cls, **place)
        except ValueError:
            expect("register: refused a new class", not is_new)
            return
        expect("register: took a class twice", is_new)
        self.known[space][cls] = entry

    def unregister(self) -> None:
        """Unregisters a class, or is refused as it should be."""
        cls, space = self.this.rng.choice(self.made), self.this.rng.choice(SPACES)
        is_known = cls in self.known[space]
        try:
            pydag.unregister_pydag_node(cls, **({"namespace": space} if space else {}))
        except ValueError:
            expect("unregister: refused a class that was registered", not is_known)
            return
        expect("unregister: took a class that was not registered", is_known)
        del self.known[space][cls]

    def registry(self, space: str) -> Registry:
        """What the reference gets."""
        return {**sp.GLOBAL, **self.known[""], **self.known[space]}

    def instance(self, below: Any) -> Any:
        """An instance that holds what is given."""
        cls = self.this.rng.choice(self.made)
        if issubclass(cls, sp.Box):
            return cls(below, below)
        made = object.__new__(cls)
        made.a, made.b = below, 1
        return made

    def forget(self) -> None:
        """Unregisters everything."""
        for space, classes in self.known.items():
            for cls in classes:
                pydag.unregister_pydag_node(cls, **({"namespace": space} if space else {}))
            classes.clear()


def _reversing(cls: Any, keeps: bool, backwards: bool) -> Callbacks:
    step = -1 if backwards else 1
    return Callbacks(
        lambda obj: (obj.children[::step], backwards),
        lambda aux, children: cls(*children[::step]),
        keeps_identity=keeps,
    )


@scenario(weight=5)
def registrations(this: Round) -> None:
    """Whatever is registered when, a tree is what the reference says; old structures stay."""
    classes = Classes(this)
    specs: list[tuple[pydag.PyDagSpec, str]] = []
    references: list[weakref.ref[Any]] = []
    try:
        _use(this, classes, specs)
    finally:
        classes.forget()
        references = [weakref.ref(cls) for cls in classes.made]
        classes.made.clear()
    this.built.clear()
    sp.EVENTS.clear()
    if this.often(0.2):
        this.rng.shuffle(specs)
        while specs:  # the last one that knows a class lets it die
            same("old structure: text", repr(specs[-1][0]), specs[-1][1])
            del specs[-1]
            gc.collect(this.rng.randrange(3))
        gc.collect()
        kept = sum(reference() is not None for reference in references)
        expect(f"registrations: {kept} classes outlive their last user", kept == 0)


def _use(this: Round, classes: Classes, specs: list[tuple[pydag.PyDagSpec, str]]) -> None:
    classes.make()
    for _ in range(this.rng.randrange(2, 12)):
        what = this.rng.randrange(8)
        if what == 0:
            classes.make()
        elif what <= 3:
            classes.register()
        elif what == 4:
            classes.unregister()
        else:
            _compare(this, classes, specs)


def _compare(this: Round, classes: Classes, specs: list[tuple[pydag.PyDagSpec, str]]) -> None:
    space = this.rng.choice(SPACES)
    part = classes.instance([sp.Opaque()])
    tree = [part, {"k": part}, classes.instance(part), (classes.instance(1),)]

    def by_address(answer: Any) -> Any:
        return [list(map(id, answer[0])), *answer[1:]]

    def theirs() -> Any:
        leaves, spec = ref.flatten(tree, namespace=space, registry=classes.registry(space))
        return [leaves, ref.text(spec), described(ref.unflatten(spec, leaves))]

    def described(built: Any) -> Any:
        leaves, spec = ref.flatten(built, namespace=space, registry=classes.registry(space))
        return [ref.text(spec), ref.all_paths(spec), list(map(id, leaves))]

    def ours() -> Any:
        leaves, spec = pydag.dag_flatten(tree, namespace=space)
        specs.append((spec, repr(spec)))
        return [leaves, repr(spec), described(pydag.dag_unflatten(spec, leaves))]

    agree("registered", lambda: by_address(ours()), lambda: by_address(theirs()), calls=False)
    spec, said = this.rng.choice(specs)
    same("old structure", repr(spec), said)
    try:
        spec.flatten_up_to(spec.unflatten([sp.Opaque() for _ in range(len(spec))]))
    except (ValueError, TypeError) as error:
        # The classes may be unregistered by now, or registered in another way.
        if "registered" not in str(error) and "type mismatch" not in str(error):
            raise Difference(f"old structure: {error}") from error
