# SPDX-License-Identifier: Apache-2.0
"""Checks the aliases in the metadata: do they name arrays of the file?"""

from collections.abc import Iterator

from .compare import are_equal
from .finding import Finding, listed, shown, size_text
from .model import Model
from .pairs import Pairs
from .progress import Bar


def check_aliases(model: Model, pairs: Pairs, bar: Bar) -> Iterator[Finding]:
    """The findings about the aliases of a model.

    Args:
        pairs: Collects the arrays that were compared.
    """
    tied: dict[str, list[str]] = {}
    for alias, name in model.aliases.items():
        if name not in model.arrays:
            if name not in model.named and model.is_known and not model.is_part:
                why = ", an alias itself" if name in model.aliases else ", which isn't there"
                text = f"{shown(alias)} is an alias of {shown(name)}{why}"
                yield Finding("error", (alias, name), text)
        elif alias in model.arrays:
            yield _stored_as_well(model, alias, name, pairs, bar)
        elif alias not in model.named:
            tied.setdefault(name, []).append(alias)
    for name, aliases in tied.items():
        verb = "is" if len(aliases) == 1 else "are"
        text = f"{listed(aliases)} {verb} {shown(name)}, by alias metadata"
        yield Finding("tie", (name, *aliases), text)


def _stored_as_well(model: Model, alias: str, name: str, pairs: Pairs, bar: Bar) -> Finding:
    one, other = model.arrays[name], model.arrays[alias]
    pairs.add(name, alias)
    if are_equal(one, other, bar):
        pairs.add_copy(name, alias)
        text = (
            f"{shown(alias)} is noted as an alias of {shown(name)}, and stored as well: "
            f"{size_text(other.nbytes)}"
        )
        return Finding("waste", (name, alias), text, other.nbytes)
    how = "they differ"
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        how = f"they are {one.signature()} and {other.signature()}"
    text = f"{shown(alias)} is noted as an alias of {shown(name)}, and both are stored: {how}"
    return Finding("error", (name, alias), text)
