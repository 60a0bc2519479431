# SPDX-License-Identifier: Apache-2.0
"""`checkpoint`, also known as `remat`."""

from collections.abc import Callable, Sequence
from typing import Any

import jax

from pydag.jaxinterop.calls.run import StaticArgument, run
from pydag.jaxinterop.compiled.jit import updated_arguments
from pydag.jaxinterop.content.content import take_apart
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.content.paths import CALL
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.notices.source import Source, named, wraps
from pydag.jaxinterop.options import with_wrapper_options
from pydag.jaxinterop.packed.packed import pack, unpack
from pydag.jaxinterop.refs import contents
from pydag.jaxinterop.treatments.arguments import Chosen
from pydag.jaxinterop.treatments.treatments import Question, treatments
from pydag.jaxinterop.typed import P, R
from pydag.typing import Identity, Where

from .carried import kept_body

_CSE = Question("checkpoint prevent_cse", lambda flag: f"given {flag}")


@with_wrapper_options
def checkpoint(
    fun: Callable[P, R],
    *,
    prevent_cse: Any = True,
    policy: Callable[..., bool] | None = None,
    static_argnums: Any = (),
    static_argnames: Any = (),
    namespace: str = "",
    identity: Identity = "all",
    static: Where | None = None,
    update_argnums: Any = None,
    update_argnames: Any = None,
) -> Callable[P, R]:
    """A function that its derivative computes again, and keeps little of; as `jax.checkpoint`.

    One identity table spans all arguments, another the result, as in `jit`. JAX runs the function
    twice for a derivative, so refs that it reads or writes go in as their contents, and are written
    at the end.

    Args:
        fun: The function.
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
    options, source = Options(namespace, identity, static), Source(fun)
    updated = updated_arguments(fun, update_argnums, update_argnames)
    chosen = Chosen.of(
        fun, None if static_argnums == () else static_argnums, static_argnames or None
    )
    jax.checkpoint(fun)  # JAX checks what it is given

    @wraps(fun)
    @jax_private.shortens_tracebacks
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        spots = chosen.spots(args, kwargs)
        call: Any = (
            tuple(StaticArgument(x) if i in spots else x for i, x in enumerate(args)),
            {name: StaticArgument(x) if name in spots else x for name, x in kwargs.items()},
        )
        leaves, content = take_apart(call, options, CALL)
        options.check_selects(call)
        refs = tuple(i for i, leaf in enumerate(leaves) if jax_private.is_ref(leaf))

        def paths() -> Sequence[str]:
            return content.paths(CALL)

        def make(get: Callable[[], Any]) -> Any:
            def flat(*inside: Any) -> Any:
                result, update = run(get(), content.build(inside), options, source, updated=updated)
                pairs = zip(content.traced_positions(), inside, strict=True)
                origins = {id(x): position for position, x in pairs if jax_private.is_ref(x)}
                packed = pack(result, options, origins)
                return update.beside(packed) if updated else packed

            return named(flat, source, paths)

        flat = kept_body(fun, ("checkpoint", content, refs, options.key(), updated), (), make)
        used: tuple[int, ...] = ()
        if refs:
            jitted = jax.jit(flat)
            traced = jitted.trace(*leaves)
            contents.check_not_closed_over(traced, leaves, refs, paths().__getitem__)
            # Into others a rule may write that runs backward, when the function has ended.
            used = tuple(
                sorted(jax_private.written_inputs(traced, or_read=True).intersection(refs))
            )
            if used:
                flat = named(contents.with_contents(jitted, used, used), source, paths)
        may_share = prevent_cse
        if not isinstance(prevent_cse, bool):
            prefix = (tuple(prevent_cse), True)
            may_share = tuple(treatments(_CSE, prefix, call, content, options))
        staged = jax.checkpoint(flat, prevent_cse=may_share, policy=policy)
        found = staged(*(leaf[...] if i in used else leaf for i, leaf in enumerate(leaves)))
        packed, new = found if used else (found, ())
        for i, content_after in zip(used, new, strict=True):
            leaves[i][...] = content_after
        return unpack(packed, content.all_leaves(leaves), (args, kwargs))

    return checkpointed


remat = checkpoint
