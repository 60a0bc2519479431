# SPDX-License-Identifier: Apache-2.0
"""Which arguments a function changes, as `update_argnums` and `update_argnames` name them."""

from collections.abc import Callable
from typing import Any

import jax

from pydag.jaxinterop.options import UpdateOptions
from pydag.jaxinterop.prefixes.arguments import Chosen, Spot

NOTHING = Chosen((), ())


def chosen_updates(
    fun: Callable[..., Any],
    options: UpdateOptions,
    static: Chosen = NOTHING,
) -> Chosen:
    """The arguments that are updated, as the options of a wrapper name them.

    Args:
        static: Those that are not opened.

    Raises:
        TypeError: They are no numbers, or no names.
        ValueError: The function has no such argument, or it is a static one.
    """
    numbers, names = options.get("update_argnums"), options.get("update_argnames")
    if numbers is None and names is None:
        return NOTHING
    numbers = numbers if numbers is None or isinstance(numbers, int) else tuple(numbers)
    names = names if names is None or isinstance(names, str) else tuple(names)
    chosen = Chosen.of(fun, numbers, names)
    try:
        # JAX checks them as it checks its own.
        jax.jit(fun, donate_argnums=numbers, donate_argnames=names)
    except (TypeError, ValueError) as error:
        text = str(error).replace("donate_arg", "update_arg")
        raise type(error)(text) from None
    both: list[Spot] = [*sorted({*chosen.numbers} & {*static.numbers})]
    both += [*sorted({*chosen.names} & {*static.names})]
    if both:
        raise ValueError(
            f"an argument can't be both static and updated: {both[0]!r}\n"
            "  A static argument is handed on as it is: what a function changes in it, the caller "
            "sees anyway."
        )
    return chosen
