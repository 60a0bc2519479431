# SPDX-License-Identifier: Apache-2.0
"""The aliases in the metadata of safetensors files: further names of arrays.

`safetensors.torch.save_model` writes them as pydag does. Other programs put anything into the
metadata: a text there is an alias if its value is the name of an array.
"""

from collections.abc import Container, Iterator, Mapping

from .package import STRUCTURE


def aliases_in(
    metadata: Mapping[str, str], arrays: Container[str], is_ours: bool
) -> dict[str, str]:
    """The array that each alias means, also of aliases that are stored as arrays themselves.

    Args:
        arrays: The names of all arrays of the model.
        is_ours: Whether pydag wrote it. In other files `format` is the framework that did.
    """
    return {
        alias: name
        for alias, name in metadata.items()
        if name in arrays and alias not in (name, STRUCTURE) and (is_ours or alias != "format")
    }


def contradictions(
    tables: Mapping[str, Mapping[str, str]],
) -> Iterator[tuple[str, dict[str, str]]]:
    """The aliases that mean different arrays in several files.

    Args:
        tables: The aliases in each file.

    Yields:
        An alias, and a file for each array that it names.
    """
    said: dict[str, dict[str, str]] = {}
    for file, aliases in tables.items():
        for alias, name in aliases.items():
            said.setdefault(alias, {}).setdefault(name, file)
    return ((alias, files) for alias, files in said.items() if len(files) > 1)
