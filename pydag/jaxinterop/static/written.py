# SPDX-License-Identifier: Apache-2.0
"""What JAX doesn't trace of a DAG as JSON, for functions that `jax.export` writes down.

Reading it imports nothing and calls nothing: the structure is the document that files have, and a
class is found if it is registered. A function, which a file can't hold, is written by its name, and
found again only in a module that is loaded: one of JAX's, or one that has a registered class.
"""

import sys
from typing import Any

import pydag._core as _core
from pydag.jaxinterop.messages.roots import place_text
from pydag.registry.names import ClassNames
from pydag.structure.document import Document, MalformedError, parse
from pydag.structure.json import document_of
from pydag.structure.values import UnwritableError, decode_leaf, encode_leaf

from .leaves import Static
from .untraced import Options, Untraced

_FIELDS = {"structure", "positions", "statics", "identity"}


def _find(name: str, names: ClassNames) -> Any:
    """What a loaded module has under `module:name`, found without running code; else None."""
    module, _, path = name.partition(":")
    root = module.partition(".")[0]
    if root in sys.stdlib_module_names or not (
        root in ("jax", "numpy") or names.has_module(module)
    ):
        return None
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = vars(found).get(part) if isinstance(found, type | type(sys)) else None
    return found


def _encode(x: Any, names: ClassNames) -> Any:
    try:
        return encode_leaf(x, names)
    except UnwritableError:
        module, name = (getattr(x, a, None) for a in ("__module__", "__qualname__"))
        path = f"{module}:{name or getattr(x, '__name__', '')}"
        if not callable(x) or _find(path, names) is not x:
            raise
        return {"function": path}


def _decode(x: Any, names: ClassNames) -> Any:
    if type(x) is not dict or x.keys() != {"function"} or type(x["function"]) is not str:
        return decode_leaf(x, names)
    found = _find(x["function"], names)
    if found is None:
        raise ValueError(
            f"no loaded module has {x['function'][:200]!r}: import the module of the model first"
        )
    return found


def dump(untraced: Untraced) -> bytes:
    """The untraced part of an argument or a result.

    Raises:
        TypeError: A static leaf, a key or a meta field can't be written; the path is named.
    """
    import json

    names = ClassNames(untraced.spec.namespace)
    statics = []
    for position, static in zip(untraced.positions, untraced.statics, strict=True):
        try:
            statics.append(_encode(static.value, names))
        except UnwritableError as error:
            raise TypeError(
                "what is exported can't be written down\n"
                f"  at {place_text(untraced.spec.accessors()[position], 'tree')}: {error}\n"
                "  Leaves that are no arrays may be numbers, text, bytes, None, and functions of a "
                "module that are found by their name. Return the arrays alone, or hold a function "
                "of a module."
            ) from None
    return json.dumps(
        {
            "structure": document_of(untraced.spec),
            "positions": untraced.positions,
            "statics": statics,
            "identity": untraced.options.identity,
        },
        separators=(",", ":"),
        allow_nan=False,
    ).encode()


def load(data: bytes) -> Untraced:
    """What `dump` wrote.

    Raises:
        ValueError: Somebody else wrote it, or a class in it isn't registered here.
    """
    whole = parse(data.decode())
    if type(whole) is not dict or whole.keys() != _FIELDS:
        raise MalformedError("the text", f"expected an object with {', '.join(sorted(_FIELDS))}")
    document = Document.read(whole["structure"])
    spec = document.spec()
    positions, statics, identity = whole["positions"], whole["statics"], whole["identity"]
    if identity not in ("all", "nodes"):
        raise MalformedError("identity", "expected 'all' or 'nodes'")
    if type(positions) is not list or any(type(i) is not int for i in positions):
        raise MalformedError("positions", "expected numbers")
    if positions != sorted({i for i in positions if 0 <= i < spec.num_leaves}):
        raise MalformedError("positions", "expected numbers of leaves, in their order")
    if type(statics) is not list or len(statics) != len(positions):
        raise MalformedError("statics", "expected one value for each position")
    names = ClassNames(spec.namespace)
    values = tuple(Static(_decode(value, names)) for value in statics)
    return Untraced(
        _core.spec_key(spec), tuple(positions), values, Options(spec.namespace, identity)
    )
