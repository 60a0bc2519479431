# SPDX-License-Identifier: Apache-2.0
"""Registering classes as nodes.

A class that is registered with optree is a node in pydag, too. If a class is registered more than
once, the order is: pydag in the namespace, optree in the namespace, pydag globally, optree
globally, JAX (once `pydag.jaxinterop` is imported).
"""

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, cast, overload

import optree

import pydag._core as _core
from pydag.typing import FlattenFunction, UnflattenFunction

from .entries import RegistryEntry, get
from .optree_private import GLOBAL_NAMESPACE
from .tables import note_registered

C = TypeVar("C", bound=type)


def checked_namespace(cls: object, namespace: object) -> str:
    """The name of the namespace; raises TypeError or ValueError if it or the class is invalid."""
    if not inspect.isclass(cls):
        raise TypeError(f"Expected a class, got an instance of {type(cls).__name__}.")
    if namespace is GLOBAL_NAMESPACE:
        return ""
    _core.check_namespace(namespace)
    assert isinstance(namespace, str)
    if not namespace:
        raise ValueError(
            "The namespace cannot be an empty string. Leave it out for the global one."
        )
    return str.__str__(namespace)  # an enum member hashes in its own way


class _Register(Protocol):
    """The type of `register_pydag_node`: a function with an attribute `get`."""

    def __call__(
        self,
        cls: C,
        /,
        flatten_func: FlattenFunction,
        unflatten_func: UnflattenFunction,
        *,
        path_entry_type: type[optree.PyTreeEntry] = optree.AutoEntry,
        namespace: str = GLOBAL_NAMESPACE,
        preserve_relative_identities: bool = True,
    ) -> C: ...

    @overload
    def get(self, cls: type, /, *, namespace: str = "") -> RegistryEntry | None: ...
    @overload
    def get(self, cls: None = None, /, *, namespace: str = "") -> dict[type, RegistryEntry]: ...


def _with_get(function: Any) -> _Register:
    function.get = get
    get.__qualname__ = f"{function.__qualname__}.get"
    return cast("_Register", function)


@_with_get
def register_pydag_node(
    cls: C,
    /,
    flatten_func: FlattenFunction,
    unflatten_func: UnflattenFunction,
    *,
    path_entry_type: type[optree.PyTreeEntry] = optree.AutoEntry,
    namespace: str = GLOBAL_NAMESPACE,
    preserve_relative_identities: bool = True,
) -> C:
    """Make a class a node, by two functions.

    `register_pydag_node.get(cls, namespace=...)` returns the registration of a class, with pydag or
    another library; without a class it returns all entries, by class.

    Args:
        cls: The class.
        flatten_func: `(object) -> (children, aux_data)` or `(children, aux_data, entries)`. It runs
            once for each distinct object. `entries` names the children in paths; without it they
            are numbered. Compared by `==`, `aux_data` is part of the structure.
        unflatten_func: `(aux_data, children) -> object`; `children` is a tuple.
        path_entry_type: The class of its entries in an accessor.
        namespace: The namespace of the registration; left out: all namespaces.
        preserve_relative_identities: False makes each occurrence of an object a node of its own.

    Returns:
        The class.

    Raises:
        TypeError: `cls` is not a class, or a function can't be called.
        ValueError: The class is registered in that namespace already, or is a builtin container; or
            the namespace is an empty string.

    Warns:
        UserWarning: The class is a namedtuple or a struct sequence, which is a node anyway.

    >>> class Pair:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    >>> _ = register_pydag_node(Pair, lambda p: ((p.x, p.y), None), lambda _, xy: Pair(*xy))
    >>> pair = Pair(1, 2)
    >>> pydag.dag_flatten([pair, pair])
    ([1, 2], PyDagSpec([&0 CustomTreeNode(Pair[None], [*, *]), *0]))
    """
    namespace = checked_namespace(cls, namespace)
    if not (inspect.isclass(path_entry_type) and issubclass(path_entry_type, optree.PyTreeEntry)):
        raise TypeError(f"Expected a subclass of PyTreeEntry, got {path_entry_type!r}.")
    for function in (flatten_func, unflatten_func):
        if not callable(function):
            raise TypeError(f"Expected a function, got {function!r}.")
    functions = flatten_func, unflatten_func, None
    has_identity = preserve_relative_identities
    _core.register(cls, *functions, path_entry_type, namespace, has_identity, False)
    try:
        _warn_of_override(cls, namespace)
    except BaseException:  # where warnings are errors
        _core.unregister(cls, namespace)
        raise
    note_registered(cls)
    return cls


def _warn_of_override(cls: type, namespace: str) -> None:
    """Warns that a registration overrides how namedtuples and struct sequences are opened."""
    if _core.is_namedtuple_class(cls):
        base = "subclass of `collections.namedtuple`"
    elif _core.is_structseq_class(cls):
        base = "class of `PyStructSequence`"
    else:
        return
    where = f" in namespace {namespace!r}" if namespace else ""
    warnings.warn(
        f"PyTree type {cls!r} is a {base}, which is already registered in the global namespace. "
        f"Override it with custom flatten/unflatten functions{where}.",
        UserWarning,
        stacklevel=3,
    )


def _methods(cls: type) -> tuple[FlattenFunction, UnflattenFunction]:
    for flatten, unflatten in (
        ("__tree_flatten__", "__tree_unflatten__"),
        ("tree_flatten", "tree_unflatten"),
    ):
        if callable(getattr(cls, flatten, None)) and callable(getattr(cls, unflatten, None)):
            for new, name in (("__tree_flatten__", flatten), ("__tree_unflatten__", unflatten)):
                if new != name:  # the older names; both may be used from then on
                    setattr(cls, new, inspect.getattr_static(cls, name))
            return getattr(cls, flatten), getattr(cls, unflatten)
    raise TypeError(
        f"{cls!r} must define both `__tree_flatten__` and `__tree_unflatten__` methods (or both "
        "`tree_flatten` and `tree_unflatten`) for registration as a node."
    )


@overload
def register_pydag_node_class(
    cls: C,
    /,
    *,
    path_entry_type: type[optree.PyTreeEntry] | None = None,
    namespace: str = GLOBAL_NAMESPACE,
    preserve_relative_identities: bool = True,
) -> C: ...
@overload
def register_pydag_node_class(
    cls: str | None = None,
    /,
    *,
    path_entry_type: type[optree.PyTreeEntry] | None = None,
    namespace: str = GLOBAL_NAMESPACE,
    preserve_relative_identities: bool = True,
) -> Callable[[C], C]: ...
def register_pydag_node_class(
    cls: Any = None,
    /,
    *,
    path_entry_type: type[optree.PyTreeEntry] | None = None,
    namespace: str = GLOBAL_NAMESPACE,
    preserve_relative_identities: bool = True,
) -> Any:
    """Make a class a node, by its own methods. A class decorator, bare or with arguments.

    The class has a method `__tree_flatten__` and a class method `__tree_unflatten__` (or
    `tree_flatten` and `tree_unflatten`) with the protocol of `register_pydag_node`.

    Args:
        cls: The class. Left out, `register_pydag_node_class` returns a decorator. A string in its
            place is the namespace.
        path_entry_type: The class of its entries in an accessor; left out: the class's attribute
            `TREE_PATH_ENTRY_TYPE`.
        namespace: The namespace of the registration; left out: all namespaces.
        preserve_relative_identities: False makes each occurrence of an object a node of its own.

    Raises:
        TypeError: The class doesn't have the methods.
        ValueError: As for `register_pydag_node`; or the namespace is given twice.

    >>> @register_pydag_node_class
    ... class Box:
    ...     def __init__(self, content):
    ...         self.content = content
    ...     def tree_flatten(self):
    ...         return (self.content,), None
    ...     @classmethod
    ...     def tree_unflatten(cls, aux_data, children):
    ...         return cls(*children)
    >>> pydag.dag_leaves(Box([1, 2]))
    [1, 2]
    """
    if isinstance(cls, str) and namespace is not GLOBAL_NAMESPACE:
        raise ValueError("Cannot specify `namespace` when the first argument is a string.")
    if cls == "":
        raise ValueError(
            "The namespace cannot be an empty string. Leave it out for the global one."
        )
    if cls is None or isinstance(cls, str):
        return functools.partial(
            register_pydag_node_class,
            path_entry_type=path_entry_type,
            namespace=namespace if cls is None else cls,
            preserve_relative_identities=preserve_relative_identities,
        )
    checked_namespace(cls, namespace)
    flatten_func, unflatten_func = _methods(cls)
    if path_entry_type is None:
        path_entry_type = getattr(cls, "TREE_PATH_ENTRY_TYPE", optree.AutoEntry)
    return register_pydag_node(
        cls,
        flatten_func,
        unflatten_func,
        path_entry_type=path_entry_type,
        namespace=namespace,
        preserve_relative_identities=preserve_relative_identities,
    )


def unregister_pydag_node(cls: type, /, *, namespace: str = GLOBAL_NAMESPACE) -> RegistryEntry:
    """Remove a registration; specs that were made with it keep working.

    Args:
        cls: The class.
        namespace: The namespace of the registration; left out: the global one.

    Returns:
        The removed registration.

    Raises:
        ValueError: The class is not registered in that namespace, or is a builtin container.
    """
    namespace = checked_namespace(cls, namespace)
    flatten_func, unflatten_func, path_entry_type = _core.unregister(cls, namespace)
    kind = optree.PyTreeKind.CUSTOM
    return RegistryEntry(cls, flatten_func, unflatten_func, path_entry_type, kind, namespace)


on_clear: list[Callable[[], object]] = []
"""What clears caches of other parts of the package."""


def clear_caches() -> None:
    """Clear the caches of structures, keys and classes.

    This affects only the memory, and the time that the next calls take.
    """
    _core.clear_caches()
    for clear in on_clear:
        clear()
