# SPDX-License-Identifier: Apache-2.0
"""Public functions that are functions of the core: called, shown and pickled as Python's are."""

import copy
import gc
import inspect
import pickle
import pydoc
from collections.abc import Callable
from typing import Any

import pytest

import pydag

untyped: Any = pydag  # for calls that a type checker refuses, too
COMPILED = [
    pydag.dag_flatten,
    pydag.dag_unflatten,
    pydag.dag_leaves,
    pydag.dag_iter,
    pydag.dag_structure,
    pydag.dag_flatten_with_path,
    pydag.dag_flatten_with_accessor,
    pydag.dag_is_leaf,
    pydag.all_leaves,
    pydag.dag_map,
    pydag.dag_map_with_path,
    pydag.dag_map_with_accessor,
    pydag.dag_copy,
]
by_name = pytest.mark.parametrize("function", COMPILED, ids=lambda f: f.__name__)


@by_name
def test_it_looks_like_a_function(function: Callable[..., Any]) -> None:
    """Name, module, help and signature are the function's; it is pickled and copied by name."""
    assert inspect.isbuiltin(function)
    assert getattr(pydag, function.__name__) is function
    assert function.__module__.startswith("pydag.ops.")
    assert pickle.loads(pickle.dumps(function)) is function
    assert copy.deepcopy(function) is function
    signature = inspect.signature(function)
    assert all(p.annotation is p.empty for p in signature.parameters.values())
    text = pydoc.plain(pydoc.render_doc(function))
    assert all(name in text for name in signature.parameters)
    assert ">>> " in (function.__doc__ or "")
    assert "--\n" not in (function.__doc__ or "")


def test_signature() -> None:
    """Parameters, their kinds and defaults are those of the definition."""
    assert str(inspect.signature(pydag.dag_map)) == (
        "(func, tree, /, *rests, is_leaf=None, none_is_leaf=False, namespace='', identity='all', "
        "where=None)"
    )
    assert str(inspect.signature(pydag.dag_unflatten)) == "(spec, leaves)"


class Text(str):
    """No exact string."""

    __slots__ = ()


def test_arguments_are_bound_as_by_python() -> None:
    """Arguments are bound by position, by name in any order, and by strings of one's own class."""
    spec = untyped.dag_structure([None, None], none_is_leaf=True)
    assert untyped.dag_unflatten(leaves=[1, 2], spec=spec) == [1, 2]
    assert untyped.dag_unflatten(spec, leaves=[1, 2]) == [1, 2]
    assert untyped.dag_leaves([1, [2]], lambda x: x == [2]) == [1, [2]]
    assert untyped.dag_leaves([1, [2]], is_leaf=lambda x: x == [2]) == [1, [2]]
    assert untyped.dag_leaves([1, None], namespace="", none_is_leaf=True) == [1, None]
    assert untyped.dag_leaves([1, None], **{"".join(["none_is", "_leaf"]): True}) == [1, None]
    assert untyped.dag_leaves([1, None], **{Text("none_is_leaf"): True}) == [1, None]
    assert untyped.dag_map(lambda *xs: xs, [1], [2], [3], none_is_leaf=False) == [(1, 2, 3)]
    assert untyped.dag_map(max, [[1, 2]], is_leaf=lambda x: x == [1, 2]) == [2]
    assert untyped.dag_copy([1, 2], leaf=float) == [1.0, 2.0]
    assert untyped.dag_map(float, [1, 2], where=lambda x: x == 1) == [1.0, 2]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: untyped.dag_flatten(), "missing 1 required positional argument: 'tree'"),
        (
            lambda: untyped.dag_flatten([], None, False),
            "takes from 1 to 2 positional arguments",
        ),
        (lambda: untyped.dag_flatten([], none=1), "got an unexpected keyword argument 'none'"),
        (lambda: untyped.dag_flatten(tree=[]), "missing 1 required positional argument: 'tree'"),
        (lambda: untyped.dag_flatten([], None, is_leaf=None), "multiple values for argument 'is_l"),
        (lambda: untyped.dag_unflatten([], []), "Expected a PyDagSpec, got []."),
        (lambda: untyped.dag_map(), "missing 2 required positional arguments: 'func' and 'tree'"),
        (lambda: untyped.dag_map(abs, [], rests=()), "got an unexpected keyword argument 'rests'"),
    ],
)
def test_bad_arguments(call: Callable[[], Any], message: str) -> None:
    """What doesn't fit is Python's own TypeError, with the function's name."""
    with pytest.raises(TypeError) as caught:
        call()
    assert message in str(caught.value)


@pytest.mark.parametrize("was_enabled", [True, False])
def test_code_of_the_user_sees_the_collector_as_it_was(was_enabled: bool) -> None:
    """Callbacks within, errors, and what comes after find the collector on, or off, as before."""
    seen = []

    def look(x: Any = None) -> Any:
        seen.append(gc.isenabled())
        return x

    class Key:
        def __hash__(self) -> int:
            look()
            return 1

    @pydag.register_pydag_node_class(namespace="collector")
    class Custom:
        def tree_flatten(self) -> Any:
            return [1], None

        @classmethod
        def tree_unflatten(cls, metadata: Any, children: Any) -> Any:
            look()
            return cls()

    before = gc.isenabled()
    (gc.enable if was_enabled else gc.disable)()
    try:
        pydag.dag_map(look, [[1], {Key(): 2}])
        pydag.dag_copy([[1], Custom(), [2]], namespace="collector")
        spec = pydag.dag_structure([[1], Custom(), [2]], namespace="collector")
        pydag.dag_unflatten(spec, iter([1, 2, 3]))
        with pytest.raises(ValueError, match="Too few leaves"):
            pydag.dag_unflatten(spec, [1])
        look()
        assert set(seen) == {was_enabled}
        assert len(seen) > 6
    finally:
        (gc.enable if before else gc.disable)()
