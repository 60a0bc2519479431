# SPDX-License-Identifier: Apache-2.0
"""What a callable holds: the object of a bound method, a module that is called, a partial's arrays.

JAX takes all of that for constants of the function: what is compiled would not notice that a model
was trained meanwhile. So a wrapper treats it as an argument. The wrapper is made of `Held.opened`,
which doesn't own what is held, and gets it, as it is at each call, by the keyword `HELD`.
"""

import functools
import inspect
import types
from collections.abc import Callable, Hashable
from operator import is_
from typing import Any, NamedTuple, TypeVar

import pydag._core as _core
from pydag.jaxinterop.function_cache import cached_for_function
from pydag.jaxinterop.messages.attributes import wraps
from pydag.jaxinterop.messages.naming import Source, name_of, named
from pydag.jaxinterop.messages.roots import HELD
from pydag.jaxinterop.notices.lost_update import tell_lost
from pydag.jaxinterop.packed.given import GivenTree
from pydag.jaxinterop.static.differentiable import is_ref
from pydag.jaxinterop.static.leaves import Static
from pydag.jaxinterop.static.option import is_array
from pydag.jaxinterop.static.untraced import Options, take_apart
from pydag.registry.weak_table import WeakTable
from pydag.structure.text import short_repr

W = TypeVar("W", bound=Callable[..., Any])

# What the wrappers hold that were made of callables which hold something.
_wrappers: WeakTable["Held"] = WeakTable()


class Held(NamedTuple):
    """What a callable holds, and how to make such a callable of something else.

    Args:
        content: What is held: an object, or a tuple of several.
        anchor: What callables of one kind have in common, such as a method's function.
        kind: With the anchor, all that there is beside the content.
        build: Makes a callable of the anchor and another content. It doesn't own this content.
    """

    content: Any
    anchor: Any
    kind: Hashable
    build: Callable[[Any, Any], Callable[..., Any]]

    def with_content(self, content: Any) -> Callable[..., Any]:
        """The callable, with something else in the place of what it holds."""
        return self.build(self.anchor, content)

    def taking_content(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        """A function that is given what `fun` holds by the keyword `HELD`: one for each kind."""
        build = self.build

        def make(get: Callable[[], Any]) -> Callable[..., Any]:
            def opened(*args: Any, **kwargs: Any) -> Any:
                return build(get(), kwargs.pop(HELD))(*args, **kwargs)

            return named(opened, Source(fun), _signature(fun))

        key = "held", self.kind, name_of(fun), str(_signature(fun))
        return cached_for_function(self.anchor, key, make)[1]

    def fresh(self, options: Options) -> Callable[..., Any]:
        """A function that calls this on a copy of what is held, as arguments are copied.

        For wrappers that call their function each time. Warns where it changes what is held.
        """
        options = Options(options.namespace, options.identity)
        fun = self.with_content(self.content)

        @wraps(fun)
        def fresh(*args: Any, **kwargs: Any) -> Any:
            try:
                given = GivenTree(*take_apart(self.content, options, "self"), "self")
            except (TypeError, ValueError):  # it can't be an argument; here it needn't be one
                return fun(*args, **kwargs)
            result = self.with_content(given.tree)(*args, **kwargs)
            tell_lost((given,), result, fun)
            return result

        return fresh

    def wrapped(self, fun: W, options: Options, wrap: Callable[[Any], Any]) -> W:
        """What a wrapper makes of a callable: the wrapper holds what the callable holds.

        Args:
            wrap: Makes the wrapper of a function.
        """
        wrapper: W = wrap(self.fresh(options))
        shown: Any = wrapper
        shown.__wrapped__ = fun
        return self.mark(wrapper, lambda content: wrap(plain(self.with_content(content))))

    def passed(self, fun: Callable[..., Any], wrapper: Callable[..., Any]) -> Any:
        """A wrapper of `opened`, as a function that passes what is held."""

        @wraps(fun)
        def call(*args: Any, **kwargs: Any) -> Any:
            return wrapper(*args, **kwargs, **{HELD: self.content})

        return self.mark(call, lambda content: functools.partial(plain(wrapper), **{HELD: content}))

    def mark(self, wrapper: W, build: Callable[[Any], Callable[..., Any]]) -> W:
        """Notes that a wrapper holds what this holds."""
        held = Held(self.content, wrapper, "wrapper", lambda _, content: build(content))
        # The table keeps what it knows of a wrapper as long as it lives, and mustn't be the cause.
        _wrappers.set(wrapper, held._replace(anchor=None))
        return wrapper


def mark_holder(
    holder: Any, fun: Callable[..., Any], namespace: str, build: Callable[[Any, Any], Any]
) -> None:
    """Notes that an object that is called holds what a function holds.

    Args:
        build: Makes of the object one of another content. It doesn't own the object.
    """
    held = held_by(fun, namespace)
    if held is not None:
        _wrappers.set(holder, Held(held.content, None, "wrapper", build))


def of_content(fun: Any, known: Any, content: Any, namespace: str) -> Any:
    """A callable that holds `content`, where `fun` holds `known`; else `fun`."""
    held = held_by(fun, namespace) if callable(fun) else None
    if held is None:
        return fun
    own, given = (x if isinstance(x, tuple) else (x,) for x in (held.content, known))
    is_same = len(own) == len(given) and all(map(is_, own, given))
    return plain(held.with_content(content)) if is_same else fun


def fresh(fun: Any, options: Options) -> Any:
    """A function that runs on a copy of what it holds; the function itself, if it holds nothing."""
    held = held_by(fun, options.namespace)
    return fun if held is None else held.fresh(options)


def plain(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function that calls another one, and of which it isn't asked what it holds."""

    @wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        return fun(*args, **kwargs)

    return call


def held_by(fun: Any, namespace: str = "") -> Held | None:
    """What a callable holds that could be an argument; None for a function.

    An object is one of a registered class or a container, and holds arrays or is a module; or it is
    an array. Numbers and text, and containers of them, configure a function.

    Raises:
        TypeError: It can't be called.
    """
    if type(fun) is types.FunctionType:
        found = _wrappers.get(fun, None)
        return None if found is None else found._replace(anchor=fun)
    if type(fun) is types.MethodType:
        owner, function = fun.__self__, fun.__func__
        if not _is_data(owner, namespace):
            return None
        return Held(owner, function, "method", types.MethodType)
    if isinstance(fun, functools.partial):
        return _of_partial(fun, namespace)
    if not callable(fun):
        raise TypeError(
            f"a function is transformed, and this can't be called: {short_repr(fun)}\n"
            "  Pass the function itself, not what it returned."
        )
    if isinstance(fun, type):
        return None
    if (found := _wrappers.get(fun, None)) is not None:
        return found._replace(anchor=fun)
    if not _is_data(fun, namespace):
        return None
    return Held(fun, type(fun), "instance", lambda _, content: content)


def _of_partial(fun: "functools.partial[Any]", namespace: str) -> Held | None:
    inner = held_by(fun.func, namespace)
    args, keywords = fun.args, fun.keywords
    numbers = tuple(i for i, arg in enumerate(args) if _is_data(arg, namespace))
    names = tuple(name for name, arg in keywords.items() if _is_data(arg, namespace))
    if inner is None and not numbers and not names:
        return None
    content = (
        *(args[i] for i in numbers),
        *(keywords[name] for name in names),
        *(() if inner is None else (inner.content,)),
    )
    other_args = tuple(None if i in numbers else arg for i, arg in enumerate(args))
    other_keywords = {name: arg for name, arg in keywords.items() if name not in names}
    build_inner = None if inner is None else inner.build

    def build(anchor: Any, content: Any) -> Callable[..., Any]:
        given = iter(content)
        every = [next(given) if i in numbers else arg for i, arg in enumerate(other_args)]
        named = {name: next(given) for name in names} | other_keywords
        function = anchor if build_inner is None else build_inner(anchor, next(given))
        return functools.partial(function, *every, **named)

    static = Static(other_args), tuple(sorted((n, Static(x)) for n, x in other_keywords.items()))
    kind = "partial", numbers, names, static, None if inner is None else inner.kind
    return Held(content, fun.func if inner is None else inner.anchor, kind, build)


def _is_data(value: Any, namespace: str) -> bool:
    """Whether an object that a callable holds is what an argument would be: no configuration."""
    if is_array(value) or is_ref(value):
        return True
    try:
        one = _core.flatten(value, is_leaf=lambda x: x is not value, namespace=namespace)[1]
        if one.is_leaf() or value is None:
            return False
        if _core.is_module(type(value), namespace):
            return True
        leaves = _core.leaves(value, namespace=namespace)
    except Exception:  # such as a cycle
        return False
    return any(is_array(leaf) or is_ref(leaf) for leaf in leaves)


def _signature(fun: Callable[..., Any]) -> inspect.Signature:
    """The signature of a callable, and the keyword for what it holds."""
    held = inspect.Parameter(HELD, inspect.Parameter.KEYWORD_ONLY, default=None)
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        kinds = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
        parameters = [inspect.Parameter(f"arg{kind}", kind) for kind in kinds]
    at = len(parameters)
    if parameters and parameters[-1].kind is inspect.Parameter.VAR_KEYWORD:
        at -= 1
    return inspect.Signature([*parameters[:at], held, *parameters[at:]])
