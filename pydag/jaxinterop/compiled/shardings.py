# SPDX-License-Identifier: Apache-2.0
"""The shardings that `jit` is given: one for everything, or tree prefixes."""

from collections.abc import Hashable, Sequence
from typing import Any

import jax

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.jaxinterop.messages.roots import shortened
from pydag.jaxinterop.packed.outputs import Outputs
from pydag.jaxinterop.prefixes.arguments import Args, Chosen, Kwargs, argument_text
from pydag.jaxinterop.prefixes.treatments import (
    Question,
    distinct,
    is_one_sharding,
    one_level,
    treatments,
)
from pydag.jaxinterop.static.untraced import Options
from pydag.typing import Leaf


class _Unspecified:
    def __reduce__(self) -> str:
        return "UNSPECIFIED"  # itself, in a copy made elsewhere


UNSPECIFIED: Any = _Unspecified()


def _describe(sharding: Any) -> str:
    return "left to JAX" if sharding is None else f"given {shortened(str(sharding), 200)}"


def _is_sharding(sharding: Any) -> bool:
    """Whether it may be one; JAX knows for sure."""
    return not (callable(sharding) or isinstance(sharding, str | bytes | int | float | complex))


_ADVICE = "Give both places one sharding, or one of them a copy."
_IN = Question("jit in_shardings", _describe, _ADVICE, _is_sharding, is_one_sharding)
_OUT = Question("jit out_shardings", _describe, _ADVICE, _is_sharding, is_one_sharding)


class Shardings:
    """`in_shardings` and `out_shardings`, as they were given."""

    def __init__(self, given_in: Any, given_out: Any, options: Options) -> None:
        self.given_in = tuple(given_in) if isinstance(given_in, list) else given_in
        self.given_out = given_out
        self.is_one = self.given_in is UNSPECIFIED or one_level(self.given_in, options)[2].is_leaf()
        self.values = () if self.is_one else tuple(distinct(self.given_in, _IN, options))
        self.number = len(self.values)

    def key(self, options: Options) -> Hashable:
        """Equal for equal shardings in equal structures."""
        prefixes = map(options.flatten, (self.given_in, self.given_out))
        return tuple((spec, tuple(leaves)) for leaves, spec in prefixes)

    def outputs(self, options: Options) -> Outputs:
        given = None if self.given_out is UNSPECIFIED else self.given_out
        return Outputs(given, None, _OUT, options)

    def of_result(self, result: Any, options: Options) -> list[Any]:
        """The sharding of each distinct leaf of a result."""
        return treatments({"result": result}, {"result": self.given_out}, _OUT, options)

    @property
    def has_given_in(self) -> bool:
        """Whether there are any for arguments."""
        return self.given_in is not UNSPECIFIED

    def check_refs(
        self,
        leaves: Sequence[Leaf],
        refs: Sequence[int],
        groups: Sequence[int] | None,
        spec: PyDagSpec,
    ) -> None:
        """Checks that concrete refs are sharded as is asked for.

        Args:
            refs: Their positions.
            groups: The number of the sharding of each leaf; None where there is but one.

        Raises:
            ValueError: A content, which is updated where it is, has another sharding.
        """
        if not self.has_given_in:
            return
        for position in refs:
            asked = self.given_in if groups is None else self.values[groups[position]]
            ref: Any = leaves[position]
            if not isinstance(asked, jax.sharding.Sharding):
                continue
            if not asked.is_equivalent_to(ref.sharding, len(ref.shape)):
                where = argument_text(spec.accessors()[position])
                raise ValueError(
                    f"jit in_shardings don't fit {where}, a ref, whose content stays where it is\n"
                    f"  in_shardings: {shortened(str(asked), 200)}\n"
                    f"  the content:  {shortened(str(ref.sharding), 200)}\n"
                    "  Leave it out there (None), or make the ref of an array with that sharding."
                )

    def for_jax(
        self, options: Options, updates: bool = False, has_extras: bool = False
    ) -> dict[str, Any]:
        """The options of `jax.jit` for a function of `(donated, kept)`; see `Key.join`.

        Args:
            updates: Whether it updates arguments.
            has_extras: Whether it returns a pair: the result, and new contents.
        """
        found = {}
        if self.given_in is not UNSPECIFIED:
            found["in_shardings"] = (
                self.given_in if self.is_one else ((None, self.values), self.values)
            )
        if self.given_out is not UNSPECIFIED:
            prefix = self.outputs(options).prefix
            if updates:
                parts: Any = prefix, None, None
                prefix = _core.make_updated(None, parts)
            found["out_shardings"] = (prefix, None) if has_extras else prefix
        return found

    def groups(
        self, args: Args, kwargs: Kwargs, static: Chosen, options: Options
    ) -> Sequence[int] | None:
        """For each distinct leaf the number of its sharding; None where there is but one.

        Raises:
            SharingError: Two paths to an array are given two shardings.
            ValueError: The shardings don't fit the arguments, or there are keyword arguments.
        """
        if self.is_one:
            return None
        spots = static.spots(args, kwargs)
        if kwargs.keys() - spots:
            raise ValueError(
                "in_shardings that are no single sharding speak of positional arguments alone, but "
                f"there are keyword arguments: {', '.join(sorted(kwargs.keys() - spots))}"
            )
        prefix = self.given_in
        if isinstance(prefix, tuple) and len(prefix) == len(args) - len(spots - kwargs.keys()):
            rest = iter(prefix)
            prefix = tuple(None if i in spots else next(rest) for i in range(len(args)))
        given = treatments(
            {"args": args, "kwargs": kwargs}, {"args": prefix, "kwargs": None}, _IN, options
        )
        return [self.values.index(s) if s in self.values else 0 for s in given]
