# SPDX-License-Identifier: Apache-2.0
"""Files with PyTorch's tensors, held against safetensors' own functions for torch."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
import torch
from safetensors.torch import load_file, load_model, save_file, save_model
from torch import nn
from torch.nn.utils import parametrizations

from pydag.files import load, save
from pydag.files.header import STRUCTURE
from pydag.integrations.torch import keeping_ties, module_tree, tie_changes


def tied() -> Any:
    module = nn.ModuleDict({"embed": nn.Embedding(5, 3), "head": nn.Linear(3, 5, bias=False)})
    module["head"].weight = module["embed"].weight
    return module


def with_buffers() -> Any:
    module = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    module.register_buffer("one", torch.arange(6.0).reshape(2, 3))
    module.register_buffer("other", module.one)
    module.register_buffer("scale", torch.tensor(3.5))
    module.register_buffer("turned", torch.arange(6).reshape(2, 3).T)
    return module


def with_a_shared_submodule() -> Any:
    layer = nn.Linear(3, 3)
    return nn.ModuleDict({"first": layer, "second": nn.Sequential(layer, nn.Linear(3, 2))})


def of_small_floats() -> Any:
    module = nn.Linear(4, 4).to(torch.bfloat16)
    for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float16"):
        number = torch.randn(3, 4).to(getattr(torch, name))
        setattr(module, name, nn.Parameter(number, requires_grad=False))
    module.dot = nn.Parameter(torch.tensor(2.5, dtype=torch.bfloat16))
    return module


def parametrized() -> Any:
    return nn.Sequential(parametrizations.weight_norm(nn.Linear(3, 3)), nn.Linear(3, 2))


MODULES = [tied, with_buffers, with_a_shared_submodule, of_small_floats, parametrized]


def contents(path: Path) -> dict[str, tuple[Any, Any, bytes]]:
    """Type, shape and bytes for every name, aliases included."""
    with safetensors.safe_open(path, framework="pt") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no dict)
        aliases = {k: v for k, v in (file.metadata() or {}).items() if k != STRUCTURE}
    arrays.update({alias: arrays[name] for alias, name in aliases.items()})
    return {
        name: (x.dtype, x.shape, x.reshape(-1).view(torch.uint8).numpy().tobytes())
        for name, x in arrays.items()
    }


@pytest.mark.parametrize("make", MODULES)
def test_the_same_file_as_save_model(tmp_path: Path, make: Any) -> None:
    """Names, bytes and aliases are those of `save_model`, also in shards."""
    module = make()
    ours, theirs = tmp_path / "ours.safetensors", tmp_path / "theirs.safetensors"
    save(ours, module.state_dict())
    save_model(module, str(theirs))
    assert contents(ours) == contents(theirs)
    assert set(load_file(ours)) | {*load(ours)} == {*module.state_dict()}
    assert len(load_file(ours)) == len(load_file(theirs))
    save(tmp_path / "shards", module.state_dict(), shard_size=100)
    whole: dict[str, Any] = {}
    for shard in (tmp_path / "shards").glob("*.safetensors"):
        whole |= contents(shard)
    assert whole == contents(theirs)


@pytest.mark.parametrize("make", MODULES)
def test_their_reader_takes_our_file(path: Path, make: Any) -> None:
    """`load_model` fills a module from a file of ours, strictly."""
    module, other = make(), make()
    save(path, module.state_dict())
    missing, unexpected = load_model(other, path)
    assert not missing
    assert not unexpected
    for name, tensor in module.state_dict().items():
        assert torch.equal(other.state_dict()[name].float(), tensor.float())


@pytest.mark.parametrize("make", MODULES)
def test_we_take_their_file(path: Path, make: Any) -> None:
    """`load` reads what `save_model` wrote, tied as the module is: tensors if `like` has them."""
    module = make()
    save_model(module, str(path))
    groups: dict[int, set[str]] = {}
    for name, tensor in module.state_dict().items():
        groups.setdefault(tensor.data_ptr(), set()).add(name)
    with torch.device("meta"):
        on_meta = make().state_dict()
    likes = [module.state_dict(), module.state_dict(keep_vars=True), on_meta]
    for found in (load(path), *(load(path, like) for like in likes)):
        found_groups: dict[int, set[str]] = {}
        for name, array in found.items():
            found_groups.setdefault(id(array), set()).add(name)
        assert {*map(frozenset, found_groups.values())} == {*map(frozenset, groups.values())}
        for name, tensor in module.state_dict().items():
            array, numbers = found[name], tensor.contiguous().reshape(-1).view(torch.uint8).numpy()
            if isinstance(array, torch.Tensor):
                assert (array.dtype, array.shape, array.device) == (
                    *(tensor.dtype, tensor.shape, torch.device("cpu")),
                )
                array = array.detach().reshape(-1).view(torch.uint8).numpy()
            else:
                assert str(array.dtype) == str(tensor.dtype).removeprefix("torch.")
            assert array.tobytes() == numbers.tobytes()


def test_tensors_of_the_kind_of_like(path: Path) -> None:
    """A parameter gives a parameter, trained or frozen; the tensors are new, and can be written."""
    module = tied()
    module["head"].bias = nn.Parameter(torch.ones(5), requires_grad=False)
    save(path, module_tree(module))
    found = load(path, module_tree(module))
    weight, bias = found["head"]["weight"], found["head"]["bias"]
    assert weight is found["embed"]["weight"]
    assert [type(x) for x in (weight, bias)] == [nn.Parameter] * 2
    assert (weight.requires_grad, bias.requires_grad) == (True, False)
    with torch.no_grad():
        weight.zero_()
    assert module["embed"].weight.any()
    save(path, {"t": torch.ones(2), "a": np.ones(2), "n": 3, "d": torch.tensor(2.5)})
    like = {"t": torch.zeros(2), "a": np.zeros(2), "n": 0, "d": torch.tensor(0.0)}
    found = load(path, like)
    assert [type(x) for x in found.values()] == [torch.Tensor, np.ndarray, int, torch.Tensor]
    assert found["d"].shape == ()
    part = load(path, like, only="['t']")
    assert part["d"] is like["d"]


@pytest.mark.parametrize("make", MODULES)
def test_a_module_loads_what_save_wrote(path: Path, make: Any) -> None:
    """The module's own state dict says what is loaded; one on `meta` is given the tensors."""
    module, other = make(), make()
    save(path, module.state_dict())
    other.load_state_dict(load(path, like=other.state_dict()))
    with torch.device("meta"):
        large = make()
    with keeping_ties(large):
        large.load_state_dict(load(path, like=large.state_dict()), assign=True)
    assert tie_changes(module, large) == ""
    for name, tensor in module.state_dict().items():
        for loaded in (other, large):
            assert torch.equal(loaded.state_dict()[name].float(), tensor.float())


def test_a_module_as_like(path: Path) -> None:
    """A module is no tree of arrays: its state dict is."""
    save(path, tied().state_dict())
    with pytest.raises(TypeError, match=r"like.*is a torch\.nn\.Module\n.*state_dict\(load\(path"):
        load(path, tied())


def test_a_file_of_copies(path: Path) -> None:
    """`load(like=)` of a tied module takes equal copies as one, and refuses those that differ."""
    module = tied()
    w = module["embed"].weight.detach()
    save_file({"embed.weight": w, "head.weight": w.clone()}, path)
    found = load(path, module.state_dict())
    assert found["embed.weight"] is found["head.weight"]
    save_file({"embed.weight": w, "head.weight": w + 1}, path)
    with pytest.raises(ValueError, match=r"'head\.weight'"):
        load(path, module.state_dict())


def test_numpy_and_torch_over_one_memory(path: Path) -> None:
    """An array of NumPy and tensors over one memory are one array; parts of it are two."""
    w = torch.arange(12.0).reshape(3, 4)
    save(path, {"a": w, "b": w.numpy(), "c": nn.Parameter(w), "d": w.detach()})
    found = load(path)
    assert found["a"] is found["b"] is found["c"] is found["d"]
    q, k, v = torch.arange(18.0).reshape(2, 9).chunk(3, dim=1)
    save(path, [q, k, v, v.numpy()])
    assert [x.tolist() for x in load(path)] == [x.tolist() for x in (q, k, v, v)]
    assert load_file(path).keys() == {"0", "1", "2"}


@pytest.mark.parametrize(
    "view",
    [
        *(lambda w: w.T, lambda w: w[1:], lambda w: w.view(torch.int32), lambda w: w.numpy()[:, 1]),
        *(lambda w: w.reshape(-1), lambda w: w.expand(2, 3, 3)),
    ],
)
def test_overlap(path: Path, view: Any) -> None:
    """Tensors that share bytes and aren't one are refused, with both names."""
    w = torch.randn(3, 3)
    with pytest.raises(ValueError, match=r"(?s)'w'.*'x'.*clone"):
        save(path, {"w": w, "x": view(w)})
    assert not path.exists()


def test_conjugates(path: Path) -> None:
    """A lazy conjugate has the memory of another tensor, and other numbers."""
    w = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex64)
    with pytest.raises(ValueError, match="share a part"):
        save(path, [w, w.conj()])
    save(path, [w.conj(), w.conj()])
    found = load(path)
    assert found[0] is found[1]
    assert found[0].tolist() == [1 - 2j, 3 + 1j]


def wrapper(inner: Any) -> Any:
    """A tensor that keeps its numbers elsewhere, as distributed and quantized ones do."""

    def dispatch(cls: Any, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    cls = type("Wrapper", (torch.Tensor,), {"__torch_dispatch__": classmethod(dispatch)})
    return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)


def nested(layout: Any) -> Any:
    """Tensors of several shapes as one."""
    with warnings.catch_warnings():  # torch says that they are a prototype
        warnings.simplefilter("ignore")
        return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=layout)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: torch.empty(2, device="meta"), "to_empty"),
        (lambda: torch.eye(2).to_sparse(), "to_dense"),
        (lambda: nested(torch.strided), "unbind"),
        (lambda: nested(torch.jagged), "unbind"),
        (lambda: nn.UninitializedParameter(), "uninitialized"),
        (lambda: torch.zeros(2, dtype=torch.complex128), "complex128"),
        (lambda: wrapper(torch.zeros(2)), "Wrapper"),
        (lambda: nn.Linear(2, 2), r"state_dict\(\)"),
    ],
)
@pytest.mark.parametrize("structure", [True, False])
def test_what_has_no_numbers(path: Path, make: Any, words: str, structure: bool) -> None:
    """Tensors on `meta` and the like, and modules, are refused with their place and the cure."""
    with pytest.raises(TypeError, match=rf"(?s)tree\['head\.weight'\].*{words}"):
        save(path, {"a": torch.zeros(2), "head.weight": make()}, structure=structure)
    assert not path.exists()


def test_a_module_itself(path: Path) -> None:
    """A module is no tree of arrays: save its state dict."""
    with pytest.raises(TypeError, match=r"save\(path, module\.state_dict\(\)\)"):
        save(path, nn.Linear(2, 2))


def test_empty_tensors_are_no_aliases(path: Path) -> None:
    """Tensors without elements are as many as there are objects."""
    one = torch.empty(0, 3)
    save(path, {"a": one, "b": torch.empty(0, 3), "c": one})
    assert load_file(path).keys() == {"a", "b"}
