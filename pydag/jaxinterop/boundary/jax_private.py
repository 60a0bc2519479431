# SPDX-License-Identifier: Apache-2.0
"""What we use of JAX that JAX doesn't promise to keep: all of it is looked up here, at import."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydag._private_names import look_up


def _of_jax(module: str, name: str) -> Any:
    return look_up(module, name, "0.10 to 0.12", "jax>=0.10,<0.13")


registry: dict[type, Any] = _of_jax("jax._src.tree_util", "_registry")
"""How each class is opened and built; JAX has no public way to ask."""

flatten_one_level_with_keys: Callable[[Any], "tuple[Iterable[tuple[Any, Any]], Any] | None"] = (
    _of_jax("jax.tree_util", "default_registry.flatten_one_level_with_keys")
)
"""The children of a node, with JAX's keys, and its aux_data; None for a leaf."""

array_classes: Mapping[type, Any] = _of_jax("jax._src.core", "pytype_aval_mappings")
"""What JAX takes for arrays, by class. The public way to ask needs an instance, and writes it down:
that runs its class's own code, and may take for ever."""

hide_frames_of: Callable[[str], None] = _of_jax("jax.extend.source_info_util", "register_exclusion")
"""Says that frames in files whose names begin so aren't the user's."""

convert_element_type: Callable[..., Any] = _of_jax("jax._src.lax.lax", "_convert_element_type")
"""Makes an array weakly typed, as Python's numbers are; the public function makes strong ones."""
