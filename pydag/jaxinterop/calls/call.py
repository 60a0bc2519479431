# SPDX-License-Identifier: Apache-2.0
"""A call of a function that JAX calls with the traced leaves of the arguments."""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from pydag.jaxinterop.content.content import Content, take_apart
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.content.paths import CALL, Roots
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.notices.lost_tie import Start
from pydag.jaxinterop.notices.source import Source, named
from pydag.jaxinterop.packed.packed import Origins, refs_among, unpack
from pydag.jaxinterop.treatments.arguments import Args, Chosen, Kwargs
from pydag.jaxinterop.treatments.treatments import Question, treatments
from pydag.typing import Leaf

from .run import run


class Call:
    """The arguments of a call, taken apart.

    Args:
        args, kwargs: The arguments.
        groups: Of each positional argument, and last of the keyword arguments. Each group is a tree
            with an identity table of its own. By default all arguments are one.
        passes_refs: Whether JAX is given the refs, too. Otherwise the function closes over them.

    Attributes:
        content: The arguments without their traced leaves.
        leaves: What JAX is given.
        refs: The refs that the function closes over, by their positions among the traced leaves.
    """

    def __init__(
        self,
        args: Args,
        kwargs: Kwargs,
        options: Options,
        *,
        groups: Sequence[Hashable] = (),
        passes_refs: bool = True,
    ) -> None:
        self._options, self._tree = options, (args, kwargs)
        self.content: Content | _Groups
        numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
        if len(numbers) < 2:
            self._trees: list[Any] = [self._tree]
            self._all, self.content = take_apart(self._tree, options, CALL)
        else:
            *own, last = map(numbers.__getitem__, groups)
            self._trees = [
                (
                    tuple(x if n == own[i] else None for i, x in enumerate(args)),
                    kwargs if n == last else {},
                )
                for n in numbers.values()
            ]
            apart = [take_apart(tree, options, CALL) for tree in self._trees]
            self._all = [leaf for leaves, _ in apart for leaf in leaves]
            self.content = _Groups([content for _, content in apart], own, last)
        options.check_selects(self._tree)
        self.refs: dict[int, Leaf] = {}
        if not passes_refs:
            self.refs = {i: self._all[i] for i in jax_private.ref_positions(self._all)}
        self.leaves = [x for i, x in enumerate(self._all) if i not in self.refs]

    def treatments(self, question: Question, *prefixes: Any) -> tuple[Any, ...]:
        """What the prefix of each group answers for each traced leaf."""
        content = self.content
        contents = content.contents if isinstance(content, _Groups) else [content]
        groups = zip(prefixes, self._trees, contents, strict=True)
        return tuple(x for group in groups for x in treatments(question, *group, self._options))

    def function(
        self,
        get: Callable[[], Callable[..., Any]],
        source: Source,
        pack: Callable[[Any, Origins], Any],
        updated: Chosen | None = None,
    ) -> Callable[..., Any]:
        """The function of leaves that JAX is given. It doesn't own those of this call.

        Args:
            get: Returns the user's function.
            pack: Makes of its result what JAX gets.
            updated: Which arguments are updated; None for a wrapper that has no such option.
        """
        content, options, refs, count = self.content, self._options, self.refs, len(self._all)
        start = Start(self._all, content.spec.num_shared)

        def flat(*leaves: Leaf) -> Any:
            given = iter(leaves)
            inside = [refs[i] if i in refs else next(given) for i in range(count)]
            tree = content.build(inside)
            equal = start.starts_equal(inside)
            result, update = run(get(), tree, options, source, updated=updated, starts_equal=equal)
            packed = pack(result, refs_among(content, inside))
            return update.beside(packed) if updated else packed

        return named(flat, source, lambda: _paths(content, refs))

    def paths(self) -> Sequence[str]:
        """The path of each leaf that JAX is given."""
        return _paths(self.content, self.refs)

    def finish(self, returned: Any) -> Any:
        """The result for the caller; updates the arguments."""
        return unpack(returned, self.content.all_leaves(self._all), self._tree)


class _Groups:
    """The groups of the arguments of a call, without their traced leaves; as one `Content`.

    Args:
        own, last: Which group each positional argument is in, and which the keyword arguments are.
    """

    def __init__(self, contents: Sequence[Content], own: Sequence[int], last: int) -> None:
        self.contents, self._own, self._last = contents, own, last

    def _parts(self, leaves: Iterable[Leaf]) -> Iterator[tuple[Content, Iterator[Leaf]]]:
        """Each content, and its traced leaves of those of all."""
        waiting = iter(leaves)
        return ((x, islice(waiting, len(x.traced_positions()))) for x in self.contents)

    def build(self, leaves: Iterable[Leaf]) -> tuple[Args, Kwargs]:
        trees: list[Any] = [content.build(own) for content, own in self._parts(leaves)]
        return tuple(trees[n][0][i] for i, n in enumerate(self._own)), trees[self._last][1]

    def all_leaves(self, leaves: Iterable[Leaf]) -> list[Leaf]:
        return [x for content, own in self._parts(leaves) for x in content.all_leaves(own)]

    def traced_positions(self) -> Sequence[int]:
        before, found = 0, list[int]()
        for content in self.contents:
            found += [before + i for i in content.traced_positions()]
            before += content.spec.num_leaves
        return found

    def paths(self, roots: Roots) -> Sequence[str]:
        return [path for content in self.contents for path in content.paths(roots)]


def _paths(content: Any, refs: Collection[int]) -> Sequence[str]:
    return [path for i, path in enumerate(content.paths(CALL)) if i not in refs]
