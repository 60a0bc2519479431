# SPDX-License-Identifier: Apache-2.0
"""Wrapping what has no wrapper here."""

from collections.abc import Callable
from typing import Any, Unpack

import jax

from pydag.jaxinterop.boundary.call import Call, owning_flat
from pydag.jaxinterop.boundary.held import anew, holds_data
from pydag.jaxinterop.messages.attributes import wraps
from pydag.jaxinterop.options import StaticOptions, with_wrapper_options
from pydag.jaxinterop.packed.dag import Dag
from pydag.jaxinterop.refs.table import NO_REFS, RefTable
from pydag.jaxinterop.static.untraced import Options


def trees(result: Any, table: RefTable = NO_REFS) -> Any:
    """What JAX returned, with trees for Dags.

    Args:
        table: The refs whose numbers stand there.
    """

    def is_dag(x: Any) -> bool:
        return isinstance(x, Dag)

    return jax.tree.map(lambda x: table.show(x).tree if is_dag(x) else x, result, is_leaf=is_dag)


@with_wrapper_options
def keep_sharing(
    transformation: Callable[..., Callable[..., Any]],
    **options: Unpack[StaticOptions],
) -> Callable[..., Callable[..., Any]]:
    """Make one of JAX's transformations keep sharing: for those that have no wrapper here.

    What is made takes a function of DAGs, and the options of the transformation. JAX sees a
    function of one argument, whose leaves are the distinct leaves of all arguments; options that
    speak of arguments (`argnums`, axes) mean that one. Leaves that JAX can't trace are static.

    Args:
        transformation: Takes a function, and perhaps options, and gives a function that calls it.

    Returns:
        A function like `transformation`. Where that gives back something that has the form of the
        arguments, such as a gradient, there comes a pair `(args, kwargs)`.

    >>> import functools
    >>> in_batches = keep_sharing(lambda f, **options: functools.partial(jax.lax.map, f, **options))
    >>> w = jnp.arange(4.0)
    >>> out = in_batches(lambda p: {"c": p["a"] * p["b"]}, batch_size=2)({"a": w, "b": w})
    >>> out["c"].tolist()
    [0.0, 1.0, 4.0, 9.0]
    """
    how = Options.given(options, StaticOptions)

    def transformed(fun: Callable[..., Any], /, *given: Any, **more: Any) -> Any:
        kept = owning_flat(fun, how)

        has_data = holds_data(fun, how.namespace)

        @wraps(fun)
        def call(*args: Any, **kwargs: Any) -> Any:
            packed = Call.keyed(args, kwargs, how)
            function = owning_flat(anew(fun, how.namespace), how) if has_data else kept
            found = transformation(function, *given, **more)(packed)
            return trees(found, RefTable.of(packed._leaves))

        return call

    return transformed
