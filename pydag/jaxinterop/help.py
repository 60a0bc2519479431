# SPDX-License-Identifier: Apache-2.0
"""The help texts of options that several wrappers have, each written once."""

from collections.abc import Callable
from typing import Any, TypeVar

from pydag.public.options import KnownOptions, with_options

F = TypeVar("F", bound=Callable[..., Any])

OF_WRAPPERS = KnownOptions(
    {
        "wrt": None,
        "namespace": "",
        "identity": "all",
        "static": None,
        "update_argnums": None,
        "update_argnames": None,
    },
    {
        "fun": "The function.",
        "tree": "The DAG.",
        "rest": (
            "Trees with at least the structure of `tree`, whose configuration isn't compared. Each "
            "gives every object one answer. None in any of the trees fits everything."
        ),
        "is_leaf": (
            "Asked once per distinct object before it is opened. True keeps it whole, as a leaf."
        ),
        "is_leaf_takes_path": "Whether `is_leaf` gets the path before the object.",
        "operands": "The arguments of the functions.",
        "operand": "The only argument, given by name, as in JAX.",
        "body_fun": "Returns a DAG of the same structure.",
        "init_val": "The first DAG.",
        "xs": "A DAG of arrays and refs with a leading axis of one size.",
        "primals": "The arguments of `fun`.",
        "argnums": "The arguments to differentiate with respect to: a position, or several.",
        "has_aux": (
            "Whether `fun` returns a pair of a value and something else, which is passed on."
        ),
        "holomorphic": "As in JAX.",
        "allow_int": "As in JAX.",
        "reduce_axes": "As in JAX.",
        "nondiff_argnums, nondiff_argnames": "Arguments that are passed through unchanged.",
        "wrt": (
            "Not JAX's. Which leaves of these arguments to differentiate with respect to: a "
            "predicate, a class or several, a pattern of the path, a prefix of booleans, or a list "
            "of such, as in `pydag.dag_mask`. A prefix is one of the argument; of the tuple of "
            "them where `argnums` is one. Left out: all that have a derivative, but for what NNX "
            "holds in Variables that are no `nnx.Param`."
        ),
        "namespace": "Not JAX's. Classes registered in this namespace are nodes, too.",
        "identity": (
            "Not JAX's. \"nodes\": only containers and modules have identity, arrays don't."
        ),
        "static": (
            "Not JAX's. Which leaves are static, beside those that JAX can't trace: a predicate, a "
            "class or several, a pattern of the path, or a list of such. They are compared by "
            "`==`; the function is compiled for each value."
        ),
        "update_argnums, update_argnames": (
            "Not JAX's. Arguments that `fun` may change: what it writes into their leaves is "
            "written into the caller's objects, when the call returns, all or nothing."
        ),
    },
)


def with_wrapper_options(definition: F) -> F:
    """Give a wrapper the help that explains each of its options."""
    return with_options(definition, OF_WRAPPERS)
