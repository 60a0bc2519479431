# SPDX-License-Identifier: Apache-2.0
"""What we use of JAX that JAX doesn't promise to keep: all of it is looked up here, at import."""

import importlib
from collections.abc import Callable, Iterable
from typing import Any

import jax

WORKS_WITH = "0.10 to 0.12"


def look_up(module: str, name: str) -> Any:
    """An object by its module and its dotted name.

    Raises:
        ImportError: JAX doesn't have it.
    """
    try:
        found = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise ImportError(
            f"pydag.jaxinterop needs {module}.{name}, which JAX {jax.__version__} doesn't have. "
            f'JAX {WORKS_WITH} has it: pip install "jax>=0.10,<0.13", or a newer pydag-tree'
        ) from error
    return found


registry: dict[type, Any] = look_up("jax._src.tree_util", "_registry")
"""How each class is opened and built; JAX has no public way to ask."""

flatten_one_level_with_keys: Callable[[Any], "tuple[Iterable[tuple[Any, Any]], Any] | None"] = (
    look_up("jax.tree_util", "default_registry.flatten_one_level_with_keys")
)
"""The children of a node, with JAX's keys, and its aux_data; None for a leaf."""

hide_frames_of: Callable[[str], None] = look_up("jax.extend.source_info_util", "register_exclusion")
"""Says that frames in files whose names begin so aren't the user's."""
