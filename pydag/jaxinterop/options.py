# SPDX-License-Identifier: Apache-2.0
"""The options that wrappers have beside JAX's: their types, their defaults and their help, once.

A wrapper takes them as `**options: Unpack[StaticOptions]`. What `help`, `inspect` and an editor
show has each of them by name.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypedDict, TypeVar

from pydag.public.options import Options, with_options
from pydag.typing import Identity, Where

F = TypeVar("F", bound=Callable[..., Any])


class TreeOptions(TypedDict, total=False):
    """How trees are taken apart."""

    namespace: str
    identity: Identity


class StaticOptions(TreeOptions, total=False):
    """The same, and what JAX doesn't trace."""

    static: Where | None


class UpdateOptions(StaticOptions, total=False):
    """The same, and which arguments the function may change."""

    update_argnums: int | Iterable[int] | None
    update_argnames: str | Iterable[str] | None


class JacobianOptions(StaticOptions, total=False):
    """The same as `StaticOptions`, and what is differentiated by."""

    wrt: Where | None


class GradOptions(UpdateOptions, JacobianOptions, total=False):
    """All of them."""


OF_WRAPPERS = Options(
    {
        "wrt": None,
        "namespace": "",
        "identity": "all",
        "static": None,
        "update_argnums": None,
        "update_argnames": None,
    },
    {
        "wrt": (
            "Not JAX's. Which leaves of these arguments to differentiate by: a predicate, a class "
            "or several, a pattern of the path, a prefix of booleans, or a list of such, as in "
            "`pydag.dag_mask`. A prefix is one of the argument; of the tuple of them where "
            "`argnums` is one. Left out: all that JAX can differentiate by, but for what NNX holds "
            "in Variables that are no `nnx.Param`."
        ),
        "namespace": "Not JAX's. Classes registered in this namespace are nodes, too.",
        "identity": (
            "Not JAX's. \"nodes\": only containers and modules have identity, arrays don't."
        ),
        "static": (
            "Not JAX's. Which leaves are static, not traced: a predicate, a class or several, a "
            "pattern of the path, or a list of such, as in `pydag.dag_mask`."
        ),
        "update_argnums, update_argnames": (
            "Not JAX's. Arguments that `fun` may change: what it writes into their objects is "
            "written into the caller's, as by `jit`."
        ),
    },
)


def with_wrapper_options(definition: F) -> F:
    """Give a wrapper the signature and the help that have each option by name."""
    return with_options(definition, OF_WRAPPERS)


def check_known(options: Mapping[str, Any], typed: Any) -> None:
    """Raise a TypeError if there is an option that a wrapper doesn't have.

    Args:
        typed: The class that lists those that it has.
    """
    for name in options:
        if name not in typed.__optional_keys__:
            from pydag.public.unexpected import raise_unexpected  # only errors need it

            raise_unexpected(name)


def check_keywords(options: Mapping[str, Any], function: Callable[..., Any]) -> None:
    """Raise a TypeError if there is an option that a function of JAX's doesn't have."""
    known = inspect.signature(function).parameters
    for name in options:
        if name not in known:
            from pydag.public.unexpected import raise_unexpected  # only errors need it

            raise_unexpected(name)
