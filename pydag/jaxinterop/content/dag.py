# SPDX-License-Identifier: Apache-2.0
"""`Dag`: a DAG as a pytree of JAX, for plain JAX, optax and orbax."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic

from jax import tree_util

import pydag._core as _core
from pydag.jaxinterop.content.content import Content, take_apart
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.help import with_wrapper_options
from pydag.jaxinterop.typed import T
from pydag.ops.select import data, masks, select_matching
from pydag.sharing.update import find_writer, writer_finders
from pydag.structure.text import bounded_repr
from pydag.typing import Identity, Leaf, Where


class LeafKey(tree_util.DictKey):  # type: ignore[misc]  # JAX's class has no types
    """JAX's key for a leaf of a `Dag` or a module, however deep it lies: its whole path.

    `.name` is the last part, as code that looks at names expects.
    """

    def __init__(self, path: str, name: str = "") -> None:
        super().__init__(path.removeprefix("."))
        self.path, self.name = path, name

    def __str__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"LeafKey({self.path!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return LeafKey, (self.path, self.name)


def leaf_keys(content: Content, root: str = "") -> Sequence[LeafKey]:
    """The key of each traced leaf. The paths begin with `root`."""
    names = [str(path[-1]) if path else "" for path in content.spec.paths()]
    pairs = zip(content.paths(root), content.traced_among(names), strict=True)
    return [LeafKey(text, name) for text, name in pairs]


@with_wrapper_options
class Dag(Generic[T]):
    """A pytree of JAX whose leaves are the distinct leaves of a DAG; its aux_data is the rest.

    For code that calls plain JAX: optax, orbax, a training loop. It is a view: when somebody who
    was given `.tree` has changed it, the next flatten sees the change. The tree of a Dag that JAX
    made is built when it is first asked for.

    Args:
        tree: The DAG.

    Raises:
        TypeError: A leaf is neither an array nor a value.

    >>> w = jnp.ones(2)
    >>> tripled = jax.tree.map(lambda x: 3 * x, Dag({"encoder": w, "decoder": w})).tree
    >>> tripled["encoder"] is tripled["decoder"]
    True
    """

    __slots__ = ("__weakref__", "_content", "_leaves", "_options", "_tree")

    def __init__(
        self,
        tree: T,
        *,
        namespace: str = "",
        identity: Identity = "all",
        static: Where | None = None,
    ) -> None:
        self._options = Options(namespace, identity, static)
        self._tree: tuple[T, ...] = (tree,)
        self._leaves, self._content = take_apart(tree, self._options)
        self._options.check_selects(tree, "tree")

    @property
    def tree(self) -> T:
        """The DAG."""
        if not self._tree:
            self._tree = (self._content.build(self._leaves),)
        return self._tree[0]

    @property
    def spec(self) -> _core.PyDagSpec:
        """The structure of the DAG, sharing included."""
        return self.parts()[1].spec

    def parts(self) -> tuple[Sequence[Leaf], Content]:
        """The traced leaves and the content, as the tree is now."""
        if self._tree:
            leaves, spec = self._options.flatten(self._tree[0])
            known = self._content.all_leaves(self._leaves)
            is_same = _core.are_same_objects(leaves, known)
            if not is_same or _core.spec_key(spec) != self._content.key:
                self._leaves, self._content = take_apart(self._tree[0], self._options)
        return self._leaves, self._content

    if not TYPE_CHECKING:  # to a type checker it would mean that a Dag has every name

        def __getattr__(self, name: str) -> Any:
            text = f"'{type(self).__name__}' object has no attribute '{name}'"
            if not name.startswith("_"):
                text += f"\n  The DAG that it stands for is its .tree: write dag.tree.{name}"
            raise AttributeError(text, name=name, obj=self)

        def __getitem__(self, item: Any) -> Any:
            raise TypeError(
                "'Dag' object is not subscriptable\n  The DAG that it stands for is its .tree: "
                f"write dag.tree[{bounded_repr(item)}]"
            )

    __iter__ = None

    def __contains__(self, item: object) -> bool:
        try:
            return item in self.tree  # type: ignore[operator]  # where the tree isn't a container
        except TypeError:
            return False

    def __repr__(self) -> str:
        leaves, content = self.parts()
        structure = repr(content.spec).removeprefix("PyDagSpec(").removesuffix(")")
        return f"Dag({structure}, [{', '.join(map(_outline, leaves))}])"

    def __reduce__(self) -> tuple[Any, ...]:
        leaves, content = self.parts()
        return dag_of, (content, tuple(leaves), self._options)


def _outline(leaf: Any) -> str:
    if getattr(leaf, "shape", None) is None or getattr(leaf, "dtype", None) is None:
        return bounded_repr(leaf)
    return f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]"


def dag_of(content: Content, leaves: Iterable[Leaf], options: Options) -> Dag[Any]:
    """The Dag of these parts. The leaves needn't be arrays."""
    dag: Dag[Any] = object.__new__(Dag)
    dag._content, dag._leaves, dag._options, dag._tree = content, list(leaves), options, ()
    return dag


@dataclasses.dataclass(slots=True, unsafe_hash=True)
class _DagStructure:
    """The auxiliary data of a Dag: its content; the options come along."""

    content: Content
    options: Options = dataclasses.field(compare=False)

    def __repr__(self) -> str:
        return repr(self.content)


def _open(dag: Dag[Any]) -> tuple[Sequence[Leaf], _DagStructure]:
    leaves, content = dag.parts()
    return leaves, _DagStructure(content, dag._options)


def _open_with_keys(dag: Dag[Any]) -> tuple[list[tuple[Any, Leaf]], _DagStructure]:
    leaves, structure = _open(dag)
    return list(zip(leaf_keys(structure.content, ".tree"), leaves, strict=True)), structure


def open_with_names(dag: Dag[Any]) -> tuple[Sequence[Leaf], _DagStructure, tuple[str, ...]]:
    """The parts of a Dag, and for each leaf the attribute that it is, as text: `tree['w']`."""
    leaves, structure = _open(dag)
    return leaves, structure, tuple(structure.content.paths("tree"))


tree_util.register_pytree_with_keys(
    Dag, _open_with_keys, lambda about, leaves: dag_of(about.content, leaves, about.options), _open
)


def _mask(dag: Dag[Any], where: Where) -> Dag[Any]:
    """The mask of a Dag: by the paths of its tree."""
    leaves, content = dag.parts()
    everything = content.all_leaves(leaves)
    chosen = select_matching(where, content.spec, everything, dag._options.namespace, data)
    return dag_of(content, content.traced_among(chosen), dag._options)


def _write_dag(dag: Dag[Any], leaves: Sequence[Leaf]) -> None:
    _, content = dag.parts()
    holder = [dag.tree]
    spec = _core.collect_specs([content.spec], namespace=content.spec.namespace)
    positions = tuple(content.traced_positions())
    plan = _core.update_plan(spec=spec, positions=positions, writers=find_writer)
    _core.carry_out(plan, holder, leaves)
    dag._content, dag._leaves, dag._tree = content, list(leaves), (holder[0],)


masks[Dag] = _mask
writer_finders.append(lambda cls: _write_dag if issubclass(cls, Dag) else None)
