# SPDX-License-Identifier: Apache-2.0
"""The private names of optree that pydag uses, all looked up here, at import.

(For JAX there is jaxinterop/foreign/jax_private.py.)
"""

import importlib
from collections.abc import Callable
from typing import Any


def look_up(module: str, name: str, works_with: str, requirement: str) -> Any:
    """An object by its module and its dotted name.

    Args:
        works_with: The versions of the library that have it, in words.
        requirement: The same as a requirement for pip.

    Raises:
        ImportError: The library doesn't have it.
    """
    try:
        found = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        library = module.partition(".")[0]
        version = getattr(importlib.import_module(library), "__version__", "of an unknown version")
        raise ImportError(
            f"pydag needs {module}.{name}, which {library} {version} doesn't have. {library} "
            f'{works_with} has it: pip install "{requirement}", or a newer pydag-tree'
        ) from error
    return found


def _of_optree(module: str, name: str) -> Any:
    return look_up(module, name, "0.20", "optree>=0.20,<0.21")


_of_optree("optree", "PyTreeKind.FROZENDICT")  # whose number the core uses

optree_registry: dict[Any, Any] = _of_optree("optree.registry", "_NODETYPE_REGISTRY")
"""How each class is opened and built. The public way to ask finds a class by `==`."""

is_dict_insertion_ordered: Callable[..., bool] = _of_optree(
    "optree._C", "is_dict_insertion_ordered"
)
"""Whether dicts keep their order in a namespace; there is no public way to ask."""

GLOBAL_NAMESPACE: Any = _of_optree("optree.registry", "__GLOBAL_NAMESPACE")
"""What optree's functions have as the default of `namespace`, and a caller may pass on."""
