# SPDX-License-Identifier: Apache-2.0
"""Objects that hold arrays where nobody sees them: in attributes of a class that isn't registered.

Such an object is a leaf that JAX can't trace, and so a constant. Its arrays would not be trained,
and a compiled function would not notice when they change. In a result they would be gone.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from pydag.jaxinterop.messages.roots import shortened
from pydag.registry.class_table import bases_of, inherits, names_in
from pydag.structure.text import short_repr

from .leaves import is_traced
from .parts import (
    CONTAINERS,
    MODULE,
    NAME,
    QUALNAME,
    is_bound,
    is_iterator,
    is_view,
    readers_of,
    readers_with_functions,
)
from .search import Hidden, search

_dtype_of = names_in(np.ndarray)["dtype"].__get__


def hidden_array(leaf: Any) -> Hidden | None:
    """An array that a leaf holds which JAX takes for a constant; None if it holds none.

    Looked for in `__dict__` and slots, in containers there and in the objects below; in what a
    method is bound to, in the arguments of a partial, and in what a view or an iterator of Python's
    leads to. Functions, classes, modules and members of enums are exempt.
    """
    if inherits(type(leaf), np.ndarray) and _dtype_of(leaf).hasobject:
        items = np.ndarray.tolist(np.ndarray.ravel(leaf))
        return search(items, readers_of, _is_hidden_array)
    return None if readers_of(leaf).is_blind() else search(leaf, readers_of, _is_hidden_array)


def _is_hidden_array(part: Any) -> bool:
    return readers_of(part).is_array and is_traced(part)


_MOST_OBJECTS = 10_000  # are looked through: a function may close over a whole program


def hidden_tracer(leaf: Any) -> Hidden | None:
    """A tracer to which a leaf of a result leads. It can't be used once the function has returned.

    Looked for as `hidden_array` does, and in what functions close over, and in classes themselves.
    """
    if readers_with_functions(leaf).is_blind():
        return None
    return search(leaf, readers_with_functions, _is_tracer, _MOST_OBJECTS)


def _is_tracer(part: Any) -> bool:
    return isinstance(part, jax.core.Tracer)


def is_lazy(leaf: Any) -> bool:
    """Whether it is an iterator or a view, which shows arrays that it doesn't hold."""
    return is_iterator(leaf) or is_view(leaf)


def check_leaf(leaf: Any, place: Callable[[], str], is_returned: bool) -> None:
    """Checks a leaf that JAX doesn't trace.

    Args:
        place: Tells where it is.
        is_returned: Whether it is in a result.

    Raises:
        TypeError: It holds an array that JAX would not see, or is an iterator in a result.
    """
    if (hidden := hidden_array(leaf)) is not None:
        raise TypeError(refusal(leaf, place(), hidden))
    if is_returned and is_iterator(leaf):
        raise TypeError(
            f"{place()} is {_named(leaf)}, an iterator: what it gives would be used up, or gone\n"
            "  Return a list or a tuple."
        )
    if is_returned and (hidden := hidden_tracer(leaf)) is not None:
        where = place()
        raise TypeError(
            f"{where} is {_named(leaf)}, and leads to an array that is being traced: "
            f"{shortened(where + hidden.path)} is {short_repr(hidden.array)}\n"
            "  When the traced function has returned, that array is gone.\n"
            "  Return the array itself, or a jax.tree_util.Partial of it, which JAX opens."
        )


def refusal(leaf: Any, where: str, hidden: Hidden) -> str:
    """The text of an error about a leaf that holds an array.

    Args:
        where: The place of the leaf.
    """
    what, cure = _kind_and_cure(leaf)
    array = short_repr(hidden.array)
    return (
        f"{where} is {what}, and holds an array: {shortened(where + hidden.path)} is {array}\n"
        "  To JAX it would be a constant: not trained, and not noticed when it changes.\n"
        f"  {cure}"
    )


def lazy_text(leaf: Any, where: str, what: str) -> str:
    """The text of an error about an iterator or a view.

    Args:
        where: The place of the leaf.
        what: What should be done with it.
    """
    kind, cure = _kind_and_cure(leaf)
    return f"{where} is {kind}, and can't be {what}\n  {cure}"


def _kind_and_cure(leaf: Any) -> tuple[str, str]:
    """What a leaf is, and how its arrays can be seen."""
    cls = type(leaf)
    name = f"{MODULE(cls)}.{QUALNAME(cls)}"
    if is_bound(leaf):
        return (
            f"a method bound to {_named(leaf.__self__)}",
            "Pass that object itself, of a registered class, and call its method inside; or pass "
            "jax.tree_util.Partial(function, object), which JAX opens.",
        )
    if inherits(cls, functools.partial):
        return f"a {name}", "Use jax.tree_util.Partial instead, which JAX opens."
    if is_lazy(leaf):
        kind = "an iterator" if is_iterator(leaf) else "a view"
        return (
            f"{kind}, {_named(leaf)}",
            "Pass a list, a tuple or a dict that holds the arrays, such as list(params.values()).",
        )
    if inherits(cls, np.ndarray):
        return "an array of objects", "Pass a list or a tuple."
    if any(inherits(cls, base) for base in CONTAINERS):
        return (
            _named(leaf),
            "Pass a list, a tuple or a dict, or register the class: "
            f"pydag.register_pydag_node({NAME(cls)}, flatten_func, unflatten_func).",
        )
    inherited = ""
    if len(bases_of(cls)) > 2:
        inherited = " A registration of a base class doesn't hold for it."
    return (
        f"an object of {name}, a class that is not registered",
        f"Register the class: pydag.register_fields({NAME(cls)}).{inherited} "
        f"Where its numbers and flags are no data: pydag.register_module({NAME(cls)}). "
        f"To keep the object a constant, say static={NAME(cls)}, or pass it to jit as an argument "
        "of its own that static_argnums names.",
    )


def _named(whole: Any) -> str:
    return f"an object of {MODULE(type(whole))}.{QUALNAME(type(whole))}"
