# SPDX-License-Identifier: Apache-2.0
"""`Derived`: stands where an array is wanted, and says what it is computed from."""

from collections.abc import Callable
from functools import partialmethod
from typing import Any, NoReturn, final

import jax.numpy as jnp
import numpy as np

from pydag.arrays.kinds import array_outline
from pydag.jaxinterop.content.leaves import is_array
from pydag.jaxinterop.content.values import is_value
from pydag.registry.fields import register_module
from pydag.structure.calls import Applied, Call, function_text, means_call
from pydag.structure.text import short_repr

_DEEPEST = 3  # levels of derived leaves in derived leaves that are written out


class NotResolvedError(TypeError, AttributeError):
    """A derived leaf was used as an array. `hasattr` takes it for an attribute that is missing."""


@final
class Derived:
    """A leaf that is computed from others: `Derived(f, *sources)` means `f(*sources)`.

    It stands where an array is wanted, in a module, a dict, anywhere: a transposed head, a positive
    scale, a weight that is made of a norm and a direction. Its sources are the leaves. They are
    trained, mapped and saved, and tied wherever else they stand; their paths lead through it, as in
    `.out.sources[0]`. `resolved(model)` computes the values.

    The function and the keyword arguments are configuration, as the numbers and flags among the
    sources are: two trees have one structure only if they have the same function there. So `f`
    should be a function of a module, a method or a `functools.partial` of one. A lambda works, but
    one that is made anew for each call is compiled for each call, and no file can hold it.

    A derived leaf is no array: operators, `float`, indexing, `jnp.asarray` and the attributes of
    arrays are a `TypeError` that names `resolved`. Functions of JAX raise errors of their own.

    Args:
        f: The function. It gets the sources, with their own derived leaves resolved and refs read.
        sources: Arrays, or trees of arrays; one at least.
        kwargs: Passed on to `f`: numbers, text, tuples and whatever else can be hashed.

    Raises:
        TypeError: There are no sources; or `f` or a keyword argument holds an array, which would be
            a constant.

    >>> embed = jnp.ones((4, 3))
    >>> model = {"embed": embed, "out": Derived(jnp.transpose, embed)}
    >>> len(pydag.dag_leaves(model)), model["out"]
    (1, Derived(transpose, f32[4,3]))
    >>> pydag.jaxinterop.resolved(model)["out"].shape
    (3, 4)
    """

    __slots__ = ("__weakref__", "_kwargs", "f", "sources")
    f: Callable[..., Any]
    sources: tuple[Any, ...]
    _kwargs: tuple[tuple[str, Any], ...]

    def __init__(self, f: Callable[..., Any], /, *sources: Any, **kwargs: Any) -> None:
        if not callable(f):
            raise TypeError(
                f"Derived takes a function first, and then what it is computed from, got "
                f"{short_repr(f)}: write Derived(f, source)"
            )
        if not sources:
            raise TypeError(
                f"Derived({function_text(f)}) has no sources, and would be a constant\n"
                "  Name what it is computed from: Derived(f, source)."
            )
        if all(isinstance(source, str) for source in sources):
            raise TypeError(
                f"Derived({function_text(f)}) is computed from objects, not from their names: "
                f"{', '.join(map(short_repr, sources))}\n"
                "  Pass the array, or the module, itself: Derived(f, self.embed)."
            )
        self.f = Applied.of(f)
        self.sources = sources
        self._kwargs = tuple(sorted(kwargs.items()))
        if not is_value(self.f):
            raise TypeError(
                f"the function of a derived leaf, {function_text(self.f)}, is no value: what it "
                "holds would be a constant, not trained and not tied to anything\n"
                "  Name an array as a source: Derived(f, array), Derived(Class.method, model)."
            )
        for name, value in self._kwargs:
            if not is_value(value):
                raise TypeError(
                    f"{name}= of a derived leaf is configuration, which is compared and hashed, "
                    f"and can't be {short_repr(value)}\n"
                    "  Give an array as a source, and a tuple in the place of a list."
                )

    def __init_subclass__(cls) -> NoReturn:
        raise TypeError("Derived has no subclasses: its function defines what it computes")

    @property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments of the function."""
        return dict(self._kwargs)

    def __repr__(self) -> str:
        name, _, rest = self._text(_DEEPEST).partition("(")
        return f"Derived({name}, {rest}"

    def _text(self, depth: int) -> str:
        if depth == 0:
            return f"{function_text(self.f)}(...)"
        shown = [
            s._text(depth - 1) if type(s) is Derived else array_outline(s) or short_repr(s)
            for s in self.sources
        ]
        return Call(self.f, self._kwargs).text(shown)

    # What is asked of arrays. Without these an operator would say that it takes no 'Derived'.

    def __getattr__(self, name: str) -> NoReturn:
        if name == "__array_struct__":
            # NumPy asks for it first of all. It takes an AttributeError for an answer, and would
            # make an array of one object.
            raise TypeError(_refusal(self, "an array was made of"))
        if name.startswith("_") or name in Derived.__slots__:
            raise AttributeError(f"'Derived' object has no attribute {name!r}", name=name, obj=self)
        raise NotResolvedError(_refusal(self, f"`.{name}` was used on"))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int | float | complex) or is_array(other):
            _refuse(self, "==")
        return self is other

    __hash__ = object.__hash__


def _refusal(derived: Derived, what: str) -> str:
    return (
        f"a derived leaf is no array until it is resolved: {what} {derived._text(_DEEPEST)}\n"
        "  Write model = pj.resolved(model) first, or decorate the function that uses the model: "
        "@pj.resolve_arguments. (pj is pydag.jaxinterop.)"
    )


def _refuse(derived: Derived, what: str, *_: Any) -> NoReturn:
    raise TypeError(_refusal(derived, f"`{what}` was used on"))


_BINARY = "add:+ sub:- mul:* truediv:/ floordiv:// mod:% matmul:@ pow:** and:& or:| xor:^ lshift:<<"
_BINARY += " rshift:>> divmod"
_OTHERS = (
    "neg:- pos:+ invert:~ lt:< le:<= gt:> ge:>= getitem:[] iter:iteration abs round bool float"
)
for _text in f"{_BINARY} r{_BINARY.replace(' ', ' r')} {_OTHERS} int complex index".split():
    _word, _, _symbol = _text.partition(":")
    setattr(Derived, f"__{_word}__", partialmethod(_refuse, _symbol or _word))

# In files the class is known by its public name.
Derived.__module__ = "pydag.jaxinterop"
register_module(Derived, ("sources",), ("f", "_kwargs"))
means_call(Derived)


def derive_from(
    f: Callable[..., Any], inverse: Callable[[Any], Any], value: Any, /, **kwargs: Any
) -> Derived:
    """A derived leaf that has a given value: `Derived(f, inverse(value))`.

    Args:
        f: The function, as in `Derived`.
        inverse: Returns the source at which `f` has that value. A number that it gives becomes an
            array, which can be trained.
        value: The value that is wanted.
        kwargs: Keyword arguments of `f`.

    >>> scale = derive_from(jnp.exp, jnp.log, 0.5)
    >>> round(float(pydag.jaxinterop.resolved(scale)), 6)
    0.5
    """
    source = inverse(value)
    if isinstance(source, int | float | complex | np.number):
        source = jnp.asarray(source)
    return Derived(f, source, **kwargs)
