# SPDX-License-Identifier: Apache-2.0
"""`Module`: a base class for models of one's own."""

import inspect
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pydag._core as _core
from pydag.registry.fields import register_module

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
                raise TypeError(_no_init(type(self)))
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
        new: Self = spec.unflatten(map(changes.get, names, children))
        return new

    def __repr__(self) -> str:
        from pydag.views.view import view  # here: most programs show no module

        try:
            return str(view(self))
        except Exception:  # an instance that isn't whole, such as in `__init__`
            return object.__repr__(self)


def _no_init(cls: type) -> str:
    """The text of an error about arguments for a class that has no `__init__`."""
    text = f"{cls.__name__}() takes no arguments: the class has no __init__"
    fields = list(vars(cls).get("__annotations__", ()))
    if fields:
        text += (
            f", and annotated fields ({', '.join(fields[:3])}{', ...' * (len(fields) > 3)}) make "
            "none\n  Decorate it with @dataclasses.dataclass, or write an __init__."
        )
    return text
