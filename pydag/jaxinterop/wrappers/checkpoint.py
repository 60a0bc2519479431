# SPDX-License-Identifier: Apache-2.0
"""`checkpoint`, also known as `remat`."""

import functools
from collections.abc import Callable
from typing import Any, Unpack

import jax

from pydag.jaxinterop.calls.call import Call
from pydag.jaxinterop.calls.run import static_argument
from pydag.jaxinterop.compiled.jit import updated_arguments
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.notices.source import Source, wraps
from pydag.jaxinterop.options import with_wrapper_options
from pydag.jaxinterop.packed.packed import Origins, pack
from pydag.jaxinterop.refs import contents
from pydag.jaxinterop.treatments.arguments import Chosen
from pydag.jaxinterop.treatments.treatments import Question
from pydag.jaxinterop.typed import P, R, StaticOptions

from .carried import kept_function

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

    def packed(result: Any, origins: Origins) -> Any:
        return pack(result, own, origins)

    @wraps(fun)
    @jax_private.shortens_tracebacks
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        spots = chosen.spots(args, kwargs)
        pairs = [*enumerate(args), *kwargs.items()]
        found = [static_argument(x, n, own, is_hashed=False) if n in spots else x for n, x in pairs]
        given, named = tuple(found[: len(args)]), dict(zip(kwargs, found[len(args) :], strict=True))
        call = Call(given, named, own)
        leaves = call.leaves
        refs = tuple(jax_private.ref_positions(leaves))
        key = "checkpoint", call.content, refs, updated
        flat = kept_function(
            fun, key, (), own, lambda get: call.function(get, source, packed, updated)
        )
        used: tuple[int, ...] = ()
        if refs and not jax_private.is_staging():
            return call.finish(flat(*leaves))
        if refs:
            jitted = jax.jit(flat)
            traced = jitted.trace(*leaves)
            contents.check_not_closed_over(traced, leaves, refs, call.paths().__getitem__)
            # Into others a rule may write that runs backward, when the function has ended.
            used = tuple(
                sorted(jax_private.written_inputs(traced, or_read=True).intersection(refs))
            )
            if used:
                flat = functools.update_wrapper(contents.with_contents(jitted, used, used), flat)
        may_share = prevent_cse
        if not isinstance(prevent_cse, bool):
            may_share = call.treatments(_CSE, (tuple(prevent_cse), True))
        staged = jax.checkpoint(flat, prevent_cse=may_share, policy=policy)
        returned = staged(*(leaf[...] if i in used else leaf for i, leaf in enumerate(leaves)))
        result, new = returned if used else (returned, ())
        for i, content in zip(used, new, strict=True):
            leaves[i][...] = content
        return call.finish(result)

    return checkpointed


remat = checkpoint
