# SPDX-License-Identifier: Apache-2.0
"""JAX's registry, as the last place where pydag looks for a class."""

import dataclasses
from typing import Any, ClassVar

import jax
import optree

import pydag._core as _core
from pydag.jaxinterop.content.dag import Dag, open_with_names
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.content.selection import variable_classes
from pydag.jaxinterop.foreign import equinox_private, flax_private, jax_private
from pydag.registry import lookup
from pydag.registry.classes import bases_of, cached_names, inherits, names_in
from pydag.registry.past_constructor import put_by_pydag
from pydag.registry.tables import WeakTable
from pydag.sharing.update import writer_finders
from pydag.structure.listing import named_details

from .known_classes import KnownFields, Trial, builder, known_fields

asked_pydag: WeakTable[tuple[Options, bool]] = WeakTable()
"""By the classes whose entries in JAX's registry ask pydag: how, and whether of its own accord."""

# How the entries of a class are written in a path, by the type of the entry: ".{}" or "[{!r}]".
_styles: WeakTable[dict[type, str]] = WeakTable()


class JaxEntry(optree.PyTreeEntry):
    """A step into a node of a class that only JAX knows: an attribute, a key, or a number."""

    __slots__: ClassVar[tuple[()]] = ()

    def __call__(self, obj: Any, /) -> Any:
        style = _styles.get(self.type, {}).get(type(self.entry))
        if style is None:
            raise TypeError(f"JAX doesn't say how the children of {self.type!r} are got from it")
        return getattr(obj, self.entry) if style == ".{}" else obj[self.entry]

    def codify(self, node: str = "", /) -> str:
        style: str = _styles.get(self.type, {}).get(type(self.entry), "[<flat index {}>]")
        return node + style.format(self.entry)


class JaxField(JaxEntry, optree.GetAttrEntry):
    """A step into a node whose children seem to be attributes: texts show them as such.

    A dataclass counts as such a node until its keys are known; some dataclasses are sequences.
    """

    __slots__: ClassVar[tuple[()]] = ()


# Of the keys that say what the entries do: the attribute that has it, and how it is written.
_PLAIN: dict[type, tuple[str, str]] = {
    jax.tree_util.GetAttrKey: ("name", ".{}"),
    jax.tree_util.DictKey: ("key", "[{!r}]"),
    jax.tree_util.SequenceKey: ("idx", "[{!r}]"),
}


def _may_give_names(cls: type, entry: Any) -> bool:
    """Whether a class may name the children of some instances only.

    JAX doesn't say whether a class has a function for keys. One that was registered with two
    functions, and gave one instance nothing but numbers, is taken for a class without.
    """
    free = getattr(getattr(entry.to_iter, "__code__", None), "co_freevars", ())
    has_method = any("tree_flatten_with_keys" in names_in(base) for base in bases_of(cls))
    return has_method or "flatten_with_keys" in free


class _Opener:
    """Opens the instances of one class, and names their children.

    The names are looked up for every instance, since they may depend on it. They don't where the
    children are the fields of a dataclass, or have no names.
    """

    def __init__(self, cls: type, entry: Any, trial: Trial, fields: KnownFields | None) -> None:
        self.registration: object = None
        self.trial, self.flatten = trial, entry.to_iter
        self.has_meta_fields = fields is not None and bool(fields.meta)
        self.may_give_names = trial.how is not None or _may_give_names(cls, entry)
        of_jax = jax_private.dataclass_fields(entry)
        self.names: Any = self.ask if of_jax is None else of_jax[0]
        if cls is Dag:
            self.flatten, self.names = open_with_names, None
        is_by_attributes = cls is Dag or of_jax is not None
        seems_so = is_by_attributes or dataclasses.is_dataclass(cls)
        self.entry_type = JaxField if seems_so else JaxEntry
        self.styles: dict[type, str] = {str: ".{}"} if is_by_attributes or fields else {}
        _styles.set(cls, self.styles)

    def ask(self, node: Any, count: int) -> tuple[Any, ...] | None:
        """The names of a node's children, of which there are so many; None where it has none."""
        found = jax_private.flatten_one_level_with_keys(node)
        names, keys = list[Any](), [key for key, _ in found[0]] if found else []
        for key in keys:
            plain = _PLAIN.get(type(key))
            if plain is None:
                number = jax.tree_util.FlattenedIndexKey
                if not self.may_give_names and all(isinstance(key, number) for key in keys):
                    self.names = None  # keys that are numbers say nothing: no other node is asked
                    _core.name_children(self.registration, self.flatten, None, None)
                return None
            attribute, style = plain
            name = getattr(key, attribute)
            if self.styles.get(type(name)) != style and not self.add_style(key, name):
                return None  # a key and an attribute, both strings: an entry would not tell which
            names.append(name)
        return tuple(names) if len(names) == count else None

    def add_style(self, key: Any, name: Any) -> bool:
        """Notes how entries of a type are written; False where they are written otherwise."""
        attribute, style = _PLAIN[type(key)]
        if self.styles.setdefault(type(name), style) != style:
            return False
        entry_type = JaxField if style == ".{}" else JaxEntry
        if type(name) is str and entry_type is not self.entry_type:
            self.entry_type = entry_type
            _core.set_path_entry_type(self.registration, entry_type)
        _core.read_names_of_keys(self.registration, type(key), attribute, type(name))
        return True

    def __call__(self, node: Any) -> tuple[Any, ...]:
        children, aux_data, *given = self.flatten(node)
        children, names = tuple(children), given[0] if given else self.names
        if callable(names):
            names = names(node, len(children)) if children else None
        if self.trial.how is not None:
            found = self.trial.learn(node, (children, aux_data, names))
            if found is not None:
                return found
        return (children, aux_data) if names is None else (children, aux_data, names)


# For each class JAX's entry, and the object that the core got for it, by which the core recognizes
# a registration that it reads again.
_registrations: WeakTable[tuple[Any, object]] = WeakTable()


def entry_of(cls: type) -> Any:
    """What JAX has registered for a class, or None."""
    if lookup.is_found_by_identity(cls):
        return jax_private.registry.get(cls)
    entries = list(jax_private.registry.items())
    return next((entry for known, entry in entries if known is cls), None)


def _look_up(cls: type) -> "lookup.Foreign | None":
    entry = entry_of(cls)
    if entry is None or asked_pydag.get(cls, None) is not None:
        return None
    known, registration = _registrations.get(cls, (None, None))
    if registration is None or known is not entry:
        registration = _registration(cls, entry)
        _registrations.set(cls, (entry, registration))
    found: object = registration
    return found


def _registration(cls: type, entry: Any) -> object:
    fields, resolve = known_fields(cls, entry), None
    build = builder(cls, entry)
    if fields is not None:
        names = fields.data + fields.meta
        answer = fields.data, (), fields.meta, tuple(n for n in cached_names(cls) if n not in names)
        resolve = lambda: answer  # noqa: E731 (a name for what the core calls)
    trial = Trial(cls, entry)
    opener = _Opener(cls, entry, trial, fields)
    opener.registration = _core.foreign_registration(
        cls,
        opener,
        build if trial.how is None else trial.build,
        opener.entry_type,
        resolve,
        fields is not None and fields.is_strict,
        equinox_private.is_equinox_module(cls),
        _is_variable(cls),
    )
    trial.registration = opener.registration
    if trial.how is None:
        with_keys = jax_private.flatten_one_level_with_keys if callable(opener.names) else None
        _core.name_children(opener.registration, opener.flatten, opener.names, with_keys)
    return opener.registration


def _is_variable(cls: type) -> bool:
    """Whether arrays have no identity below an instance, which has it; notes which are trained."""
    classes = flax_private.variable_classes()
    if classes is None or not inherits(cls, classes[0]):
        return False
    if classes not in variable_classes:
        variable_classes.append(classes)
    return True


put_by_pydag[id(jax.ShapeDtypeStruct)] = jax.ShapeDtypeStruct
writer_finders.append(flax_private.writer_of)
named_details.append(flax_private.named_details)
lookup.add_fallback(
    _look_up,
    jax_private.registry,
    lambda: [cls for cls in list(jax_private.registry) if asked_pydag.get(cls, None) is None],
)
lookup.set_value_base(jax.core.AbstractValue)  # JAX may keep one for all that are equal
