// SPDX-License-Identifier: Apache-2.0
#include "spec/records.h"
#include "bind/bind.h"
#include "spec/spec.h"
#include "structure/listing.h"

namespace pydag {

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
}

}  // namespace pydag
