# SPDX-License-Identifier: Apache-2.0
"""What we know of optax that optax doesn't promise to keep.

Its transformations keep masks and labels, and the transformations that they are made of, in the
closures of their functions. Here are the names that they have there. In an optax that has renamed
one, a function that makes a mask gets a `Dag`, and its mask is refused.
"""

import copy
import functools
import sys
import types
from collections.abc import Callable
from typing import Any

FLAGS = "mask"
LABELS = "param_labels"
DIMENSIONS = ("weight_dimension_numbers", "muon_weight_dimension_numbers")
TREES = (FLAGS, LABELS, *DIMENSIONS)
"""The names of what is a tree like the parameters, or a function that makes one."""

FROZEN = "freeze_mask"
"""The name of the mask in the function of labels that `selective_transform` makes."""

_FACTORY = "inner_factory"
"""The name of the function by which `inject_hyperparams` makes a transformation for each update."""


def is_placeholder(params: Any) -> bool:
    """Whether optax asks for a state that shows where parameters would stand."""
    cls = type(params)
    return cls.__name__ == "_ParamsPlaceholder" and _is_of_optax(cls)


def is_lookahead(params: Any) -> bool:
    """Whether these are the two models, fast and slow, of `optax.lookahead`."""
    return type(params) is lookahead_class()


def lookahead_class() -> type | None:
    """The class of those two models; None where nobody has loaded optax."""
    return getattr(sys.modules.get("optax"), "LookaheadParams", None)


def params_for_evaluation(frame: types.FrameType) -> Any:
    """The argument of `optax.contrib.schedule_free_eval_params`, if a frame is of that function."""
    if frame.f_code.co_name != "schedule_free_eval_params":
        return None
    is_of_optax = frame.f_globals.get("__name__", "").partition(".")[0] == "optax"
    return frame.f_locals.get("params") if is_of_optax else None


def searches_states(frame: types.FrameType) -> bool:
    """Whether a frame is of the functions behind `optax.tree.get` and `optax.tree.set`.

    They look for names in dicts and in instances of `tuple` that have fields.
    """
    return bool(frame.f_globals.get("__name__", "").startswith("optax.tree"))


def is_dimensions(x: Any) -> bool:
    """Whether this is optax's description of an array's dimensions: a tuple, but no container."""
    cls = type(x)
    return cls.__name__.endswith("DimensionNumbers") and _is_of_optax(cls)


def _is_of_optax(x: Any) -> bool:
    return str(getattr(x, "__module__", "")).partition(".")[0] == "optax"


def frozen_by(function: Any) -> Any:
    """The mask from which `selective_transform` has made a function of labels; None for others."""
    if not (isinstance(function, types.FunctionType) and _is_of_optax(function)):
        return None
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return next((cell.cell_contents for name, cell in cells if name == FROZEN), None)


def with_frozen(function: types.FunctionType, mask: Any) -> Any:
    """That function of labels, made from another mask."""
    return _with_cells(function, lambda name, value: mask if name == FROZEN else value)


def _with_cells(
    function: types.FunctionType, change: Callable[[str, Any], Any]
) -> types.FunctionType:
    """A function with other values in its closure; the function itself where none is another."""
    cells = list(function.__closure__ or ())
    is_changed = False
    for i, (name, cell) in enumerate(zip(function.__code__.co_freevars, cells, strict=True)):
        try:
            value = cell.cell_contents
        except ValueError:  # it has none yet
            continue
        changed = change(name, value)
        if changed is not value:
            cells[i], is_changed = types.CellType(changed), True
    if not is_changed:
        return function
    made = types.FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        tuple(cells),
    )
    made.__kwdefaults__ = function.__kwdefaults__
    functools.update_wrapper(made, function)
    return made


class WithTrees:
    """Makes a transformation of another one, with other masks, labels and the like in it.

    It goes through functions, their closures, tuples, lists and dicts; and through `MultiSteps`.
    What holds no mask stays the object that it is.

    Args:
        changed: Makes of the name and the value of a mask another mask.
        checked: Makes of the name and the value of another function of the user's, which one of
            optax's holds, one that looks out for a mask under a name that isn't known here.
    """

    def __init__(
        self,
        changed: Callable[[str, Any], Any],
        checked: Callable[[str, Any], Any] = lambda _, function: function,
    ) -> None:
        self._changed, self._checked = changed, checked
        self._known: dict[int, tuple[Any, Any]] = {}  # owns what the ids are of

    def __call__(self, x: Any) -> Any:
        """The transformation, or what is in one, with other masks."""
        if not isinstance(
            x, (tuple, list, dict, types.FunctionType, types.MethodType, functools.partial)
        ):
            return x
        if id(x) not in self._known:
            self._known[id(x)] = x, x  # so one that holds itself ends
            self._known[id(x)] = x, self._made(x)
        return self._known[id(x)][1]

    def _made(self, x: Any) -> Any:
        if isinstance(x, types.FunctionType):
            return _with_cells(x, functools.partial(self._cell, _is_of_optax(x)))
        if isinstance(x, types.MethodType):
            return self._method(x)
        if type(x) is functools.partial:
            parts = x.func, x.args, x.keywords
            func, args, keywords = map(self, parts)
            is_same = all(a is b for a, b in zip(parts, (func, args, keywords), strict=True))
            return x if is_same else functools.partial(func, *args, **keywords)
        if type(x) is dict:
            items = {key: self(value) for key, value in x.items()}
            return x if all(items[key] is x[key] for key in x) else items
        if not (type(x) in (tuple, list) or (isinstance(x, tuple) and hasattr(x, "_make"))):
            return x
        found = [self(item) for item in x]
        if all(a is b for a, b in zip(found, x, strict=True)):
            return x
        return type(x)._make(found) if hasattr(type(x), "_make") else type(x)(found)

    def _cell(self, is_of_optax: bool, name: str, value: Any) -> Any:
        if is_of_optax and name in TREES and value is not None:
            return self._changed(name, value)
        if is_of_optax and name == _FACTORY:
            # It makes one for each update: nothing of those is kept.
            own = self._changed, self._checked
            return lambda *args, **kwargs: WithTrees(*own)(value(*args, **kwargs))
        found = self(value)
        if is_of_optax and isinstance(value, types.FunctionType) and not _is_of_optax(value):
            return self._checked(name, found)
        return found

    def _method(self, method: types.MethodType) -> Any:
        """A method of one of optax's own objects, which has its transformation as an attribute."""
        owner = method.__self__
        if not _is_of_optax(type(owner)) or not hasattr(owner, "__dict__"):
            return method
        found = {name: self(value) for name, value in vars(owner).items()}
        if all(found[name] is value for name, value in vars(owner).items()):
            return method
        changed = copy.copy(owner)
        vars(changed).update(found)
        return types.MethodType(method.__func__, changed)
