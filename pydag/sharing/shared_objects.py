# SPDX-License-Identifier: Apache-2.0
"""The shared objects of a DAG, and the slots that hold them."""

from typing import Unpack

import pydag._core as _core
from pydag.public.options import with_options
from pydag.structure.spec_methods import SharedObject, shared_of_spec
from pydag.typing import Dag, IsLeaf, KeywordOptions


@with_options
def shared_objects(
    tree: Dag, is_leaf: IsLeaf | None = None, **options: Unpack[KeywordOptions]
) -> list[SharedObject]:
    """The shared objects of a DAG, and the slots that hold them.

    Raises:
        CycleError: An object contains itself.

    >>> w = [1.0]
    >>> [found] = shared_objects({"encoder": w, "decoder": {"out": w}})
    >>> found.paths, found.object is w
    ((('decoder', 'out'), ('encoder',)), True)
    """
    spec, objects = _core.shared_objects(tree, is_leaf=is_leaf, **options)
    return shared_of_spec(spec, objects)
