# SPDX-License-Identifier: Apache-2.0
"""What is registered with the core and its reference, and what a call to either gives."""

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import specimens as sp
from reference_kinds import Callbacks, Registry

import pydag

Options = dict[str, Any]


def register(classes: Registry, **namespace: str) -> None:
    """Registers with pydag what the reference has."""
    for cls, known in classes.items():
        common: Any = {"preserve_relative_identities": known.keeps_identity, **namespace}
        if isinstance(known, Callbacks):
            if not known.foreign:
                pydag.register_pydag_node(cls, known.flatten, known.unflatten, **common)
        else:
            pydag.register_fields(cls, data_fields=known.data, meta_fields=known.meta, **common)


with warnings.catch_warnings():  # of a namedtuple that is registered
    warnings.simplefilter("ignore")
    register(sp.GLOBAL)
    register(sp.LOCAL, namespace=sp.NAMESPACE)


def known(options: Options) -> Options:
    """The options for the reference: which classes are nodes has to be said."""
    return {**options, "registry": sp.REGISTRIES[options["namespace"]]}


def numbering() -> Callable[..., int]:
    """A function that notes what it was given, as an event, and answers 0, 1, 2 ..."""
    numbers = itertools.count()

    def f(*arguments: Any) -> int:
        sp.EVENTS.append(("f", *arguments))
        return next(numbers)

    return f


def outcome(call: Callable[[], Any]) -> tuple[Any, list[Any], str]:
    """What a call returns, what the callbacks saw, and the name of what it raised."""
    sp.EVENTS.clear()
    try:
        result, error = call(), ""
    except Exception as raised:
        result, error = None, type(raised).__name__
    return result, list(sp.EVENTS), error
