# SPDX-License-Identifier: Apache-2.0
"""JAX's registry, as the last place where pydag looks for a class."""

import dataclasses
from collections.abc import Iterable
from typing import Any, ClassVar

import optree
from jax import tree_util

import pydag._core as _core
from pydag.jaxinterop import jax_private
from pydag.registry import lookup
from pydag.registry.class_table import bases_of, names_in
from pydag.registry.weak_table import WeakTable

from .known_fields import is_module, known_fields
from .stand_ins import Trial

# How JAX sees the instances of a class whose entry in its registry asks pydag.
asked_pydag: WeakTable[Any] = WeakTable()

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
    """The same for a class whose children are attributes, or so it seems: texts show them as such.

    A dataclass is taken for one until its keys were asked for; some are sequences.
    """

    __slots__: ClassVar[tuple[()]] = ()


_PLAIN: dict[type, tuple[str, str]] = {
    tree_util.GetAttrKey: ("name", ".{}"),
    tree_util.DictKey: ("key", "[{!r}]"),
    tree_util.SequenceKey: ("idx", "[{!r}]"),
}


def _named(cls: type, keys: Iterable[Any]) -> tuple[Any, ...] | None:
    """The entries that JAX's keys say, in pydag's words; None if they say no more than a number."""
    names: list[Any] = []
    styles = dict(_styles.get(cls, {}))
    for key in keys:
        if type(key) not in _PLAIN:
            return None
        attribute, style = _PLAIN[type(key)]
        names.append(getattr(key, attribute))
        if styles.setdefault(type(names[-1]), style) != style:
            return None  # a key and an attribute, both strings: an entry would not tell which
    _styles.set(cls, styles)
    return tuple(names)


def _may_give_names(cls: type, entry: Any) -> bool:
    """Whether a class may give names to some instances' children if it gave none to another's.

    JAX doesn't say whether a class has a function for keys. One that was registered with two
    functions, and gave one instance nothing but numbers, is taken for a class without.
    """
    free = getattr(getattr(entry.to_iter, "__code__", None), "co_freevars", ())
    has_method = any("tree_flatten_with_keys" in names_in(base) for base in bases_of(cls))
    return has_method or "flatten_with_keys" in free


class _Opener:
    """Opens the instances of one class, and names their children.

    The names are asked for at every instance, since they may depend on it. They don't where the
    children are the fields of a dataclass, or have no names.
    """

    def __init__(self, cls: type, entry: Any, trial: Trial) -> None:
        self.flatten = entry.to_iter
        self.registration: object = None
        self.entry_type = JaxField if dataclasses.is_dataclass(cls) else JaxEntry
        self.may_give_names = trial.how is not None or _may_give_names(cls, entry)
        fields = jax_private.dataclass_fields(entry)
        self.names: Any = self.ask if fields is None else fields[0]
        if fields is not None:
            _styles.set(cls, {str: ".{}"})
            self.entry_type = JaxField
        self.trial = trial

    def ask(self, node: Any, count: int) -> tuple[Any, ...] | None:
        """The names of a node's children, of which there are so many; None where it has none."""
        opened = jax_private.flatten_one_level_with_keys(node)
        if opened is None:
            return None
        keys = [key for key, _ in opened[0]]
        names = _named(type(node), keys)
        if names is None and not self.may_give_names and all(map(_is_number, keys)):
            self.names = None
            _core.name_children(self.registration, self.flatten, None)
        if names is not None and len(names) != count:
            return None
        self.write_as(_styles.get(type(node), {}).get(str))
        return names

    def write_as(self, style: str | None) -> None:
        """Tells the core whether the names of children are attributes."""
        entry_type = JaxField if style == ".{}" else JaxEntry
        if style is not None and entry_type is not self.entry_type:
            self.entry_type = entry_type
            _core.set_path_entry_type(self.registration, entry_type)

    def __call__(self, node: Any) -> tuple[Any, ...]:
        children, aux_data = self.flatten(node)
        children, names = tuple(children), self.names
        if callable(names):
            names = names(node, len(children)) if children else None
        if self.trial.how is not None:
            found = self.trial.learn(node, (children, aux_data, names))
            if found is not None:
                return found
        return (children, aux_data) if names is None else (children, aux_data, names)


def _is_number(key: Any) -> bool:
    return isinstance(key, tree_util.FlattenedIndexKey)


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
    if fields is not None:
        answer = fields.data, (), fields.meta
        resolve = lambda: answer  # noqa: E731 (a name for what the core calls)
        _styles.set(cls, {str: ".{}"})
    trial = Trial(cls, entry)
    opener = _Opener(cls, entry, trial)
    opener.registration = _core.foreign_registration(
        cls,
        opener,
        entry.from_iter if trial.how is None else trial.build,
        opener.entry_type,
        resolve,
        fields is not None and fields.is_strict,
        is_module(cls),
    )
    trial.registration = opener.registration
    if trial.how is None:
        _core.name_children(opener.registration, opener.flatten, opener.names)
    return opener.registration


def _known_to_jax_alone() -> list[type]:
    """The classes of JAX's registry, but for those that pydag knows, or knew."""
    return [cls for cls in list(jax_private.registry) if asked_pydag.get(cls, None) is None]


lookup.add_fallback(_look_up, jax_private.registry, _known_to_jax_alone)
