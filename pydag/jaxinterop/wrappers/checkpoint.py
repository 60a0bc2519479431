# SPDX-License-Identifier: Apache-2.0
"""`checkpoint`, also known as `remat`: refs go in as contents, because JAX runs it twice."""

import functools
from collections.abc import Callable
from typing import Any, Unpack

import jax

from pydag.jaxinterop.calls import Arguments
from pydag.jaxinterop.compiled.jit import updated_arguments
from pydag.jaxinterop.compiled.kept import kept_function
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.content.packed import pack
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.help import with_wrapper_options
from pydag.jaxinterop.naming import Source, wraps
from pydag.jaxinterop.refs import Refs, check_not_closed_over, with_contents
from pydag.jaxinterop.treatments.arguments import Chosen, static_argument
from pydag.jaxinterop.treatments.treatments import Question
from pydag.jaxinterop.typed import P, R, StaticOptions

_CSE = Question("checkpoint prevent_cse", lambda flag: f"given {flag}")


@with_wrapper_options
def checkpoint(
    fun: Callable[P, R],
    *,
    prevent_cse: Any = True,
    policy: Callable[..., bool] | None = None,
    static_argnums: Any = (),
    static_argnames: Any = (),
    update_argnums: Any = None,
    update_argnames: Any = None,
    **options: Unpack[StaticOptions],
) -> Callable[P, R]:
    """A function that its derivative computes again, and keeps little of; as `jax.checkpoint`.

    One identity table spans all arguments, another the result, as in `jit`. JAX runs the function
    twice for a derivative, so refs that it reads or writes go in as their contents, and are written
    at the end.

    Args:
        prevent_cse, policy: As in JAX.
        static_argnums, static_argnames: Arguments that are not opened, and compared by type and
            value.

    Raises:
        ValueError: When called: `static` selects nothing; or the function changes the structure or
            a static leaf of an argument that is updated.

    >>> w = jnp.float32(2.0)
    >>> square = checkpoint(lambda p: p["a"] * p["b"])
    >>> float(pydag.jaxinterop.grad(square)({"a": w, "b": w})["a"])
    4.0
    """
    own, source = Options.of(options), Source(fun)
    updated = updated_arguments(fun, update_argnums, update_argnames)
    numbers, names = None if static_argnums == () else static_argnums, static_argnames or None
    chosen = Chosen.of(fun, numbers, names)
    # JAX checks what it is given.
    jax.checkpoint(fun)
    if chosen:
        jax.jit(fun, static_argnums=numbers, static_argnames=names)

    @wraps(fun)
    @jax_private.shortens_tracebacks
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        spots = chosen.spots(args, kwargs)
        pairs = [*enumerate(args), *kwargs.items()]
        found = [static_argument(x, n, own, is_hashed=False) if n in spots else x for n, x in pairs]
        given, named = tuple(found[: len(args)]), dict(zip(kwargs, found[len(args) :], strict=True))
        call = Arguments(given, named, own)
        leaves = call.leaves
        refs = Refs(leaves).positions
        key = "checkpoint", call.content, refs, updated

        def make(get: Callable[[], Any]) -> Any:
            return call.function(get, source, lambda x, refs: pack(x, own, refs), updated)

        flat = kept_function(fun, key, (), own, make)
        used: tuple[int, ...] = ()
        if refs and not jax_private.is_staging():
            return call.finish(flat(*leaves))
        if refs:
            jitted = jax.jit(flat)
            traced = jitted.trace(*leaves)
            check_not_closed_over(traced, leaves, refs, call.paths().__getitem__)
            # Into others a rule may write that runs backward, when the function has ended.
            used = tuple(
                sorted(jax_private.written_inputs(traced, or_read=True).intersection(refs))
            )
            if used:
                with_refs = with_contents(jitted, used, used, lambda _: None)
                flat = functools.update_wrapper(with_refs, flat)
        may_share = prevent_cse
        if not isinstance(prevent_cse, bool):
            may_share = call.treatments(_CSE, (tuple(prevent_cse), True))
        staged = jax.checkpoint(flat, prevent_cse=may_share, policy=policy)
        returned = staged(*(leaf[...] if i in used else leaf for i, leaf in enumerate(leaves)))
        if used:
            returned, contents = returned
            Refs([leaves[i] for i in used]).assign(contents)
        return call.finish(returned)

    return checkpointed


remat = checkpoint
