# SPDX-License-Identifier: Apache-2.0
"""A function by `jit` and its programs, one for each content of its arguments."""

import copyreg
import functools
import inspect
import types
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import pydag._core as _core
from pydag.jaxinterop.content.content import Content, take_apart
from pydag.jaxinterop.content.leaves import is_number
from pydag.jaxinterop.content.options import CALL, Options
from pydag.jaxinterop.content.values import is_settled
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.naming import Source
from pydag.jaxinterop.notices.difference import explain_miss, has_changing_number
from pydag.jaxinterop.refs import WritesMoreError, access, are_replaceable
from pydag.jaxinterop.treatments.arguments import CallTree, Chosen, parameters_of, static_argument
from pydag.jaxinterop.treatments.outputs import Outputs, is_sharding
from pydag.jaxinterop.treatments.treatments import Question, treatments
from pydag.sharing.tie import note_untie
from pydag.typing import Dag, Leaf

from .program import Program, Recipe

_COMPARED = 8  # earlier calls, where a miss is explained
_MOST = 4096  # programs that are remembered; they are easily made again


def _placed(sharding: Any) -> str:
    """A sharding in words, the same for the two ways to write it."""
    return "left to JAX" if sharding is None else f"given {sharding}".replace(", None)", ",)")


IN_SHARDINGS = Question("jit in_shardings", _placed, is_sharding)
OUT_SHARDINGS = Question("jit out_shardings", _placed, is_sharding)
_DONATION = Question(
    "donate_argnums",
    str,
    None,
    "Donate both arguments or neither, or give one of them a copy.",
    lambda how, leaf: "kept" if jax_private.is_ref(leaf) else how,
)


class Settings(NamedTuple):
    """The options of `jit` that say how a function is compiled."""

    static: Chosen
    donated: Chosen
    updated: Chosen
    shardings: tuple[Any, Any]  # of the arguments, and of the result
    jax_options: dict[str, Any]


class CompiledFunction:
    """A function, which isn't owned, and how it is compiled."""

    def __init__(
        self, get: Callable[[], Any], source: Source, options: Options, given: Settings
    ) -> None:
        self.source, self.options, self._given = source, options, given
        outputs = Outputs(OUT_SHARDINGS, given.shardings[1], None, options)
        self._recipe = Recipe(get, source, options, outputs, given.updated, given.jax_options, [])
        self._programs: dict[Hashable, Program] = {}
        self._has_warned = False  # of a number that changes
        self._plans = _core.call_plans(options.namespace, options.identity, access)

    @functools.cached_property
    def _places(self) -> dict[str, int]:
        """Those of the parameters; none if any name is taken."""
        fun = self._recipe.get()
        if type(fun) is types.FunctionType and not vars(fun):  # what `inspect` finds takes longer
            code = fun.__code__
            takes_all = bool(code.co_flags & inspect.CO_VARKEYWORDS)
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        else:
            parameters = parameters_of(fun)
            takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
            names = tuple(p.name for p in parameters)
        return {} if takes_all else {name: i for i, name in enumerate(names)}

    def __reduce__(self) -> tuple[Any, ...]:
        """For `cloudpickle`: where it arrives, nothing is compiled yet."""
        return _arrived, (self._recipe.get(), self.options, self._given)

    # --- a call ---

    @jax_private.shortens_tracebacks
    def run(self, args: Any, kwargs: Any) -> Dag:
        """A call that the core doesn't know how to make."""
        if self._recipe.unties:
            note_untie()
        call = self.arranged(args, kwargs)
        leaves, content, program = self.prepare(call)
        key: Any = program.content.key
        program.prepare(leaves)
        try:
            result = program.call(leaves, call)
        except WritesMoreError as error:
            program.write(*error.args)
            _core.forget_plans(self._plans, key)
            result = program.call(leaves, call)
        plan = program.plan(leaves, content.values)
        if plan is not None:
            _core.add_plan(self._plans, key, plan)
        return result

    def recover(self, error: Exception, args: Any, kwargs: Any) -> Any:
        """The result of a call of the core's that raised; NotImplemented if none can be.

        Raises:
            TypeError: The core took an array of NumPy's for one of a dtype that JAX has.
        """
        if type(error) is TypeError:
            take_apart(self.arranged(args, kwargs), self.options, CALL)
        return self.run(args, kwargs) if type(error) is WritesMoreError else NotImplemented

    def prepare(self, call: CallTree) -> tuple[list[Leaf], Content, Program]:
        """The traced leaves of a call, its content, and the program for it."""
        leaves, content = take_apart(call, self.options, CALL)
        refs = tuple(jax_private.ref_positions(leaves))
        passes_refs = bool(refs) and not are_replaceable([leaves[i] for i in refs])
        if passes_refs:
            refs = ()
        key = content, refs, passes_refs
        program = self._programs.get(key)
        if program is None:
            self.options.check_selects(call)
            earlier = [p.content for p in list(self._programs.values())[-_COMPARED:]]
            if earlier:
                contents = [*earlier, content]
                has_warned = self._has_warned or has_changing_number(self.source, contents)
                self._has_warned = has_warned
                explain_miss(self.source, content, earlier)
            donated = self._donated_leaves(call, content, leaves) if self._given.donated else ()
            shardings = None if self._given.shardings[0] is None else self._shardings(call, content)
            program = Program(self._recipe, content, leaves, donated, shardings, refs, passes_refs)
            if len(self._programs) >= _MOST:
                self.forget()
            self._programs[key] = program
        return leaves, content, program

    def arranged(self, args: Any, kwargs: Any) -> CallTree:
        """The arguments as they are flattened: static ones as leaves, names as in the signature."""
        if len(kwargs) > 1 and self._places.keys() >= kwargs.keys():
            kwargs = {name: kwargs[name] for name in sorted(kwargs, key=self._places.__getitem__)}
        if not self._given.static:
            return tuple(args), kwargs
        spots = self._given.static.spots(args, kwargs)
        return (
            tuple(self._static_leaf(x, i) if i in spots else x for i, x in enumerate(args)),
            {n: self._static_leaf(x, n) if n in spots else x for n, x in kwargs.items()},
        )

    def _static_leaf(self, value: Any, spot: int | str) -> Any:
        leaf: Any = _core.static_leaf(self._plans, value)
        if leaf is None:
            leaf = static_argument(value, spot, self.options)
            if is_settled(value):
                _core.add_static_leaf(self._plans, leaf)
        return leaf

    # --- what a program is made with ---

    def _donated_leaves(
        self, call: CallTree, content: Content, leaves: Sequence[Leaf]
    ) -> tuple[int, ...]:
        args, kwargs = call
        spots = self._given.donated.spots(args, kwargs)

        def how(spot: int | str) -> str:
            return "donated" if spot in spots else "kept"

        prefix = tuple(map(how, range(len(args)))), {name: how(name) for name in kwargs}
        found = treatments(_DONATION, prefix, call, content, self.options)
        able = [not (jax_private.is_ref(x) or is_number(x)) for x in leaves]
        return tuple(i for i, how in enumerate(found) if how == "donated" and able[i])

    def _shardings(self, call: CallTree, content: Content) -> tuple[Any, ...]:
        (args, kwargs), given = call, self._given.shardings[0]
        given = tuple(given) if isinstance(given, list) else given
        static = self._given.static.spots(args, kwargs)
        if isinstance(given, tuple) and static:
            traced = [i for i in range(len(args)) if i not in static]
            if len(given) != len(traced):
                raise ValueError(
                    f"jit in_shardings has {len(given)} entries, and {len(traced)} arguments "
                    "aren't static: give one for each of these"
                )
            given = tuple(map(dict(zip(traced, given, strict=True)).get, range(len(args))))
        prefix = given if is_sharding(given) else (given, None)
        return tuple(treatments(IN_SHARDINGS, prefix, call, content, self.options))

    # --- what users see ---

    def core_caller(self) -> _core.JitCaller:
        """The core's part of the function that users call."""
        return _core.jit_caller(
            plans=self._plans,
            unties=self._recipe.unties,
            note_untie=note_untie,
            places=self._places,
            static_numbers=[spot for spot in self._given.static if isinstance(spot, int)],
            static_names=frozenset(x for x in self._given.static if isinstance(x, str)),
            run=self.run,
            recover=self.recover,
        )

    def caller(self) -> Callable[..., Any]:
        """The function that users call: the core makes its calls."""
        caller = self.core_caller()

        def call(*args: Any, **kwargs: Any) -> Any:
            return caller(*args, **kwargs)

        _core.lead_calls_to_caller(call)
        return call

    def cache_size(self) -> int:
        """The number of programs that JAX has compiled."""
        made = [p.jitted for p in list(self._programs.values()) if p.jitted is not None]
        return sum(jitted._cache_size() for jitted in made)

    def forget(self) -> None:
        """Forgets what was compiled."""
        for program in list(self._programs.values()):  # threads may add
            if program.jitted is not None:
                program.jitted.clear_cache()
        self._programs.clear()
        _core.forget_plans(self._plans, None)


def _arrived(fun: Any, options: Options, given: Settings) -> CompiledFunction:
    return CompiledFunction(lambda: fun, Source(fun), options, given)


def _reduce_caller(caller: _core.JitCaller) -> tuple[Any, ...]:
    run: Any = caller.run  # a method of the compiled function
    return CompiledFunction.core_caller, (run.__self__,)


copyreg.pickle(_core.JitCaller, _reduce_caller)
