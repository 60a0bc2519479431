"""Modules that hold one module together: the case that pydag was asked for.

Two towers look words up in one embedding. Flattening and unflattening such a model must give two
towers over one *new* embedding. tests/core/test_core_agrees.py has the same for any DAG.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pydag


class Part:
    """Holds whatever it is given."""

    def __init__(self, **parts: Any) -> None:
        vars(self).update(parts)


def by_functions(cls: type) -> None:
    """Makes the attributes of a class its children, by a flatten and an unflatten function."""
    pydag.register_pydag_node(
        cls,
        lambda part: (tuple(vars(part).values()), tuple(vars(part))),
        lambda names, children: cls(**dict(zip(names, children, strict=True))),
    )


def two_towers(register: Callable[[type], object] = pydag.register_fields) -> Any:
    """Two towers of different scale over one embedding; the classes are new."""
    embedding, tower, model = (type(name, (Part,), {}) for name in ("Embedding", "Tower", "Model"))
    for cls in (embedding, tower, model):
        register(cls)
    shared = embedding(table=[0.0, 1.0])
    return model(query=tower(e=shared, scale=0.5), document=tower(e=shared, scale=2.0))


@pytest.mark.parametrize("register", [pydag.register_fields, by_functions])
def test_a_module_of_two_parents_stays_one(register: Callable[[type], object]) -> None:
    """Towers that shared an embedding share the rebuilt one, and nothing of the original."""
    model = two_towers(register)
    leaves, spec = pydag.dag_flatten(model)
    rebuilt = pydag.dag_unflatten(spec, leaves)
    assert rebuilt.query.e is rebuilt.document.e
    old = (model, model.query, model.document, model.query.e)
    new = (rebuilt, rebuilt.query, rebuilt.document, rebuilt.query.e)
    assert len({*map(id, old), *map(id, new)}) == 8


def is_embedding(x: object) -> bool:
    """Tells whether `x` is to be kept whole."""
    return type(x).__name__ == "Embedding"


def test_a_map_over_objects_kept_whole() -> None:
    """The function gets the object itself, once, and its result is shared as the object was."""
    model, seen = two_towers(), list[Any]()
    labels: Any = pydag.dag_map(lambda x: seen.append(x) or [x], model, is_leaf=is_embedding)  # type: ignore[func-returns-value]  # meant
    assert seen == [model.query.e, 2.0, 0.5]
    assert labels.query.e == [model.query.e]
    assert labels.query.e is labels.document.e
