# SPDX-License-Identifier: Apache-2.0
"""What a mapped function changes in its arguments: it is returned with their axes."""

from collections.abc import Callable, Sequence
from typing import Any

from pydag.jaxinterop.boundary.call import Call
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.messages.naming import Source, named
from pydag.jaxinterop.messages.roots import CALL, place_text
from pydag.jaxinterop.notices.blame import type_text
from pydag.jaxinterop.packed.outputs import Outputs, unpacked
from pydag.jaxinterop.packed.packed import Packed
from pydag.jaxinterop.prefixes.arguments import Args, Chosen, Kwargs
from pydag.jaxinterop.structure.groups import grouped, in_order
from pydag.jaxinterop.updates.update import Update, finished


class MappedUpdates:
    """The function that JAX maps, and what it returns besides the result: a group for each axis.

    Args:
        axes: Of each traced leaf of the call.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        source: Source,
        updated: Chosen,
        outputs: Outputs,
        call: Call,
        axes: Sequence[Any],
    ) -> None:
        self._fun, self._updated, self._outputs = fun, updated, outputs
        self._axes = dict(zip(call._untraced.traced_positions(), axes, strict=True))
        self._groups = list(dict.fromkeys(axes))
        if None not in self._groups:
            self._groups.append(None)  # for static numbers that are arrays now
        self.out_axes = outputs.prefix, None, tuple(self._groups)

        def flat(call: Call) -> Any:
            return self._run(call)

        self.function = named(flat, source)

    def _run(self, call: Call) -> Any:
        result, update = call.run_and_update(self._fun, self._updated)
        self._check(call, update)
        order = [self._groups.index(self._axes.get(p)) for p in update.positions]
        groups = grouped(update.leaves, order, len(self._groups))
        return self._outputs.pack(result), Packed((), (update.plan, order)), tuple(groups)

    def _check(self, call: Call, update: Update) -> None:
        """Checks that what isn't mapped is the same in each slice."""
        mapped = next(
            (
                leaf
                for leaf, axis in zip(call._leaves, self._axes.values(), strict=True)
                if axis is not None
            ),
            None,
        )
        for position, leaf in zip(update.positions, update.leaves, strict=True):
            if self._axes.get(position) is None and jax_private.is_batched_with(leaf, mapped):
                where = place_text(call.spec.accessors()[position], CALL)
                raise ValueError(
                    f"{where} is not mapped (its axis is None), but what the function writes there "
                    f"is another array in each slice, {type_text(leaf)}\n"
                    "  Map it, too (in_axes), with a value for each slice; or let all slices write "
                    "the same, such as a mean over the axis (jax.lax.pmean with axis_name)."
                )

    def finish(self, returned: Any, args: Args, kwargs: Kwargs) -> Any:
        """Writes the changes into the arguments, and returns the result."""
        packed, shell, groups = returned
        plan, order = shell.content
        update = Update(plan, tuple(in_order(groups, order)))
        return finished(update.beside(packed), (args, kwargs), unpacked)
