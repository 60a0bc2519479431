# SPDX-License-Identifier: Apache-2.0
"""Classes whose instances JAX sees as it sees a `Dag` of them: `Module`, and what is registered."""

import inspect
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast

import jax
import numpy as np

import pydag._core as _core
from pydag.jaxinterop.content.content import Content, take_apart
from pydag.jaxinterop.content.dag import leaf_keys
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.content.selection import hides_configuration
from pydag.jaxinterop.foreign.jax_private import describe
from pydag.jaxinterop.help import with_wrapper_options
from pydag.registry.fields import module_listeners, register_module
from pydag.typing import Identity, Leaf, Where

from .jax_registry import asked_pydag, entry_of

C = TypeVar("C", bound=type)
_BY_ITSELF = Options(), True

# What modules of PyTorch have, and what to write for it.
_OF_TORCH = {
    "forward": "Define __call__, and call the model.",
    "load_state_dict": "Write model = pj.load(path, model), or pj.from_checkpoint(model, arrays).",
    "named_parameters": "pydag.dag_flatten_with_path(model) gives the paths and the arrays.",
    "parameters": "pj.optimizer takes the model itself; pj.tree.leaves(model) lists its arrays.",
    "state_dict": "pj.save(path, model) writes it; pydag.dag_flatten_with_path(model) lists it.",
    "to": "Write pj.tree.map(lambda x: jax.device_put(x, device), model), or x.astype(dtype).",
    "zero_grad": "A gradient is a value: pj.grad(loss)(model) returns a new one.",
}
_SELF = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)


class Module:
    """A base class whose subclasses are modules: to pydag, to its wrappers, and to JAX.

    Nothing else is asked of a subclass: attributes that are arrays, or hold some, are the model;
    numbers, flags, text and functions are its configuration. An instance is changed as any other
    object is. `jax.tree.map`, `jax.jit` and the like see its data, each array once. It is shown as
    by `pydag.view`, unless a class says otherwise; it can be pickled and copied, also by
    `copy.replace(model, head=new)`, which calls no `__init__`.

    Each subclass is registered by `pydag.register_module`, once it is made: with the fields that
    that function finds. Class keywords go on to the next `__init_subclass__`.

    One keyword is the class's own. With `class Model(Module, resolve=True)` the public methods,
    `__call__` among them, are called on a `self` whose derived leaves are resolved (see `Derived`
    and `resolve_arguments`). Subclasses inherit it.

    >>> class Scale(Module):
    ...     def __init__(self, size):
    ...         self.factor, self.power = jnp.ones(size), 2
    >>> jax.tree.map(lambda x: 3 * x, Scale(2)).power
    2
    >>> Scale(2)
    Scale
    ├─ .factor: f32[2]
    └─ .power: 2
    3 objects, 2 leaves, 2 parameters, 8 bytes
    """

    _resolves: ClassVar[bool] = False

    def __init_subclass__(cls, *, resolve: bool | None = None, **options: Any) -> None:
        try:
            super().__init_subclass__(**options)
        except TypeError as error:
            if options:
                error.add_note(
                    f"Module takes no class keyword {next(iter(options))!r}, only resolve=. Where "
                    "instances are to be frozen, decorate the class with "
                    "@dataclasses.dataclass(frozen=True)."
                )
            raise
        if resolve is not None:
            cls._resolves = resolve
        if cls._resolves:
            from pydag.jaxinterop.derived.resolve import resolve_methods

            resolve_methods(cls)
        if "__repr__" not in vars(cls):
            cls.__repr__ = cls.__repr__  # type: ignore[method-assign]  # so that `@dataclass` writes none
        register_module(cls)

    if not TYPE_CHECKING:  # there, a class without `__init__` takes no arguments

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            classes = type(self).__mro__
            if (args or kwargs) and classes[classes.index(Module) + 1] is object:
                text = f"{type(self).__name__}() takes no arguments: the class has no __init__"
                if fields := list(vars(type(self)).get("__annotations__", ())):
                    text += (
                        f", and annotated fields ({', '.join(fields[:3])}"
                        f"{', ...' * (len(fields) > 3)}) make none\n  Decorate it with "
                        "@dataclasses.dataclass, or write an __init__."
                    )
                raise TypeError(text)
            super().__init__(*args, **kwargs)

        __init__.__signature__ = inspect.Signature([_SELF])

        def __getattr__(self, name: str) -> Any:
            text = f"{type(self).__name__!r} object has no attribute {name!r}"
            if name in _OF_TORCH:
                text += f"\n  {_OF_TORCH[name]}"
            raise AttributeError(text, name=name, obj=self)

    def __replace__(self, /, **changes: Any) -> Self:
        """`copy.replace(module, name=value)`: a copy with other values in these attributes."""
        children, names, spec = _core.open_one_level(self)
        if wrong := [name for name in changes if name not in names]:
            raise TypeError(f"{type(self).__name__} has no attribute {wrong[0]!r}: {list(names)}")
        return cast(Self, spec.unflatten(map(changes.get, names, children)))

    def __repr__(self) -> str:
        from pydag.views.view import view  # here: most programs show no module

        try:
            return str(view(self))
        except Exception:  # an instance that isn't whole, such as in `__init__`
            return object.__repr__(self)


@with_wrapper_options
def register(
    cls: C, *, namespace: str = "", identity: Identity = "all", static: Where | None = None
) -> C:
    """Make JAX see the instances of a class as it sees a `Dag` of them. Also a decorator.

    The leaves of an instance are then its distinct leaves, whatever function of plain JAX it is
    given to.

    Args:
        cls: A class that is registered with pydag, and not with JAX.

    Raises:
        ValueError: The class is registered with JAX already, and not by `pydag.register_module`.
        TypeError: When an instance is flattened: the class is no node of pydag's.

    >>> @register
    ... @pydag.register_fields
    ... class Pair:
    ...     def __init__(self, w):
    ...         self.a = self.b = w
    >>> jax.tree.map(lambda x: x + 1, Pair(jnp.zeros(()))).b
    Array(1., dtype=float32)
    """
    _, is_by_itself = asked_pydag.get(cls, (None, False))
    if not is_by_itself:
        _register_with_jax(cls)
    asked_pydag.set(cls, (Options(namespace, identity, static), False))
    return cls


def _register_with_jax(cls: type) -> None:
    def flatten(node: Any) -> tuple[Sequence[Leaf], Content]:
        leaves, content = take_apart(node, asked_pydag.get(cls, _BY_ITSELF)[0], cls.__name__)
        if content.spec.is_leaf():
            raise TypeError(
                f"{type(node)!r} is registered with pydag.jaxinterop but is no node of pydag's; "
                "register it there first, such as with pydag.register_fields"
            )
        return leaves, content

    def flatten_with_keys(node: Any) -> tuple[list[tuple[Any, Leaf]], Content]:
        leaves, content = flatten(node)
        return list(zip(leaf_keys(content), leaves, strict=True)), content

    def unflatten(content: Content, leaves: Iterable[Leaf]) -> Any:
        # JAX puts a bare `object()` at all leaves of a tree to count them.
        found = [describe((), np.bool_) if type(x) is object else x for x in leaves]
        return content.build_mapped(found)

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
    hides_configuration.set(cls, True)


def _show_to_jax(cls: type) -> None:
    """Lets JAX see the instances of a class of modules, unless it knows the class."""
    if entry_of(cls) is None:
        _register_with_jax(cls)
        asked_pydag.set(cls, _BY_ITSELF)


module_listeners.append(_show_to_jax)
for _namespace, _cls in _core.registered_classes():
    if _namespace == "" and _core.is_module(_cls, ""):
        _show_to_jax(_cls)
