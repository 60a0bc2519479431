# SPDX-License-Identifier: Apache-2.0
"""`keep_sharing`: a transformation of functions of pytrees, as one of functions of DAGs."""

import functools
from collections.abc import Callable
from typing import Any, Unpack

import pydag._core as _core
from pydag.jaxinterop.calls import run
from pydag.jaxinterop.compiled.kept import kept_function
from pydag.jaxinterop.content.content import take_apart
from pydag.jaxinterop.content.dag import Dag, dag_of
from pydag.jaxinterop.content.options import CALL, Options
from pydag.jaxinterop.content.packed import Packed, pack, unpack
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.help import with_wrapper_options
from pydag.jaxinterop.naming import Source, named, wraps
from pydag.jaxinterop.refs import Refs
from pydag.jaxinterop.typed import StaticOptions


@with_wrapper_options
def keep_sharing(
    transformation: Callable[..., Any], **options: Unpack[StaticOptions]
) -> Callable[..., Any]:
    """Turn a transformation of functions of pytrees into one of functions of DAGs.

    For transformations that have no wrapper here. The function that JAX's transformation makes is
    called with one pytree, a `Dag` of all arguments, and its options are for such a function.

    Args:
        transformation: Takes a function of pytrees, and perhaps options, and returns such a
            function.

    >>> w = jnp.float32(3.0)
    >>> jit = keep_sharing(jax.jit)
    >>> out = jit(lambda p: {"c": p["a"], "d": p["b"]})({"a": w, "b": w})
    >>> out["c"] is out["d"]
    True
    """
    own = Options.of(options)

    @functools.wraps(transformation)
    def transform(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
        source = Source(fun)

        def make(get: Callable[[], Any]) -> Any:
            def flat(dag: Dag[Any]) -> Any:
                leaves, content = dag.parts()
                # Where the transformation hands on what it is given, `dag.tree` is the caller's.
                tree: Any = content.build(leaves)
                result, _ = run(get(), tree, own, source)
                return pack(result, own, Refs(leaves).origins)

            return named(flat, source)

        flat = make(lambda: fun)  # a staged function, such as a callback, is needed later
        if jax_private.is_top_level():
            flat = kept_function(fun, "keep_sharing", (), own, make)
        transformed = transformation(flat, *args, **kwargs)

        @wraps(fun)
        def call(*args: Any, **kwargs: Any) -> Any:
            leaves, content = take_apart((args, kwargs), own, CALL)
            own.check_selects((args, kwargs))
            found = transformed(dag_of(content, leaves, own))
            refs = Refs(leaves)

            def build(part: Any) -> Any:  # of what may be more than the result of the function
                if type(part) is Packed:
                    return unpack(part, refs)
                return part.tree if type(part) is Dag else part

            return _core.map(build, found, (), None, is_leaf=lambda x: type(x) in (Packed, Dag))

        return call

    return transform
