# SPDX-License-Identifier: Apache-2.0
"""The arguments of a compiled function, as they are flattened: static ones are leaves."""

import inspect
from collections.abc import Callable
from typing import Any

from pydag.jaxinterop.prefixes.arguments import Args, Chosen, Kwargs
from pydag.jaxinterop.static.leaves import Static, is_settled

from .leaf_groups import MOST


class KeywordOrder:
    """Puts keyword arguments in the order of the signature, where the function can't see another.

    Without it a call that names the same arguments in another order would be traced again.
    """

    def __init__(self, fun: Callable[..., Any]) -> None:
        try:
            parameters = list(inspect.signature(fun).parameters.values())
        except (ValueError, TypeError):
            parameters = []
        takes_all = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
        self._places = {} if takes_all else {p.name: i for i, p in enumerate(parameters)}

    def of(self, kwargs: Kwargs) -> Kwargs:
        """The keyword arguments in order; as they are where one isn't the function's."""
        if len(kwargs) < 2 or not self._places.keys() >= kwargs.keys():
            return kwargs
        return {name: kwargs[name] for name in sorted(kwargs, key=self._places.__getitem__)}


class StaticArguments:
    """Replaces each static argument by a leaf: the same leaf for all values that are equal.

    So calls with the same static arguments are recognized by identity. A value that may change
    while it stays the same object is compared each time.
    """

    def __init__(self, chosen: Chosen) -> None:
        self.chosen = chosen
        self._numbers, self._names = chosen
        self._known: dict[Static, Static] = {}
        self._settled: dict[int, Static] = {}  # by the id of the value, which the leaf owns

    def wrap(self, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
        """The arguments, with leaves for those that are static."""
        settled = self._settled
        if self._numbers:
            items, count = list(args), len(args)
            for i in self._numbers:
                if i < 0:
                    i += count
                if 0 <= i < count:
                    value = items[i]
                    known = settled.get(id(value))
                    is_known = known is not None and known.value is value
                    items[i] = known if is_known else self._leaf(value)
            args = tuple(items)
        if kwargs and self._names:
            kwargs = {
                name: self._leaf(value) if name in self._names else value
                for name, value in kwargs.items()
            }
        return args, kwargs

    def _leaf(self, value: Any) -> Static:
        known = self._settled.get(id(value))
        if known is not None and known.value is value:
            return known
        leaf = Static(value)
        try:
            leaf.check_hashable()
            same = self._known.setdefault(leaf, leaf)
        except Exception:  # the error comes, with the path, when a key is made of it
            return leaf
        if same is leaf:
            if len(self._known) > MOST:
                self._known.clear()
                self._settled.clear()
            if is_settled(value):
                self._settled[id(value)] = leaf
        return same
