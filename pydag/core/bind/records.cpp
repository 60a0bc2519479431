// SPDX-License-Identifier: Apache-2.0
#include "spec/records.h"
#include "bind/bind.h"
#include "spec/spec.h"
#include "structure/listing.h"
#include "structure/paths.h"
#include "structure/select.h"

namespace pydag {
namespace {

nb::object text_of_step(nb::handle entry, nb::handle attribute) {
    return step_text({nb::borrow(attribute.is_none() ? entry : attribute), !attribute.is_none()});
}

}  // namespace

void bind_records(nb::module_ &module) {
    module.def("node_kinds", node_kinds, nb::sig("def node_kinds() -> list[tuple[str, tuple[str, ...], bool, bool]]"));
    module.def(
        "nodes_of", [](nb::handle spec) { return nodes_of(spec_of(spec).structure()); },
        nb::sig("def nodes_of(spec: PyDagSpec, /) -> tuple[tuple[tuple[Any, ...], ...], tuple[Any, ...]]"));
    module.def("spec_from_nodes", spec_from_nodes, nb::arg("none_is_leaf"), nb::arg("namespace").none(),
               nb::arg("rows").none(), nb::arg("refs").none(),
               nb::sig("def spec_from_nodes(none_is_leaf: bool, namespace: str, rows: tuple[tuple[Any, ...], ...], "
                       "refs: tuple[Any, ...], /) -> PyDagSpec"));
    module.def("check_rows", check_rows, nb::arg("none_is_leaf"), nb::arg("rows").none(), nb::arg("num_refs"),
               nb::sig("def check_rows(none_is_leaf: bool, rows: tuple[tuple[Any, ...], ...], num_refs: int, /) "
                       "-> None"));
    module.def(
        "connections", connections,
        nb::sig("def connections(records: Sequence[tuple[Any, ...]], /) -> "
                "tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], list[tuple[int, ...]], tuple[int, ...]]"));
    module.def("step_text", text_of_step, nb::arg().none(), nb::arg().none(),
               nb::sig("def step_text(entry: Any, attribute: str | None, /) -> str"));
    module.def(
        "leaves_by_path",
        [](nb::handle spec, nb::str pattern, uint32_t depth) {
            return leaves_by_path(spec_of(spec).structure(), pattern, depth);
        },
        nb::sig("def leaves_by_path(spec: PyDagSpec, pattern: str, depth: int, /) -> list[bool]"));
    module.def(
        "leaves_below",
        [](nb::handle spec, nb::handle is_meant) { return leaves_below(spec_of(spec).structure(), is_meant); },
        nb::sig("def leaves_below(spec: PyDagSpec, is_meant: Callable[[type], bool], /) -> list[bool]"));
}

}  // namespace pydag
