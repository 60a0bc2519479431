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

// Python's reader of JSON calls this for every object of a text: one of Python's own for each array of a file
// took a tenth of the time of reading it.
nb::object json_object(nb::handle pairs) {
    if (!PyList_CheckExact(pairs.ptr())) fail(PyExc_TypeError, "expected a list of pairs");
    const nb::object found = checked(PyDict_New());
    const Py_ssize_t size = PyList_GET_SIZE(pairs.ptr());
    for (Py_ssize_t i = 0; i < size; ++i) {
        const nb::handle pair(PyList_GET_ITEM(pairs.ptr(), i));
        if (!PyTuple_CheckExact(pair.ptr()) || PyTuple_GET_SIZE(pair.ptr()) != 2 ||
            !PyUnicode_CheckExact(PyTuple_GET_ITEM(pair.ptr(), 0)))
            fail(PyExc_TypeError, "expected pairs of a name and a value");
        PyObject *const name = PyTuple_GET_ITEM(pair.ptr(), 0);
        if (PyDict_SetItem(found.ptr(), name, PyTuple_GET_ITEM(pair.ptr(), 1)) < 0) throw nb::python_error();
        if (PyDict_GET_SIZE(found.ptr()) == i) fail(PyExc_ValueError, "the name %.200R stands twice", name);
    }
    return found;
}

// Where the bytes of an object with a buffer begin. They stay there as long as it lives, if it is an array.
size_t buffer_address(nb::handle object) {
    Py_buffer view;
    if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_SIMPLE) < 0) throw nb::python_error();
    const auto address = reinterpret_cast<size_t>(view.buf);
    PyBuffer_Release(&view);
    return address;
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
    module.def("buffer_address", buffer_address, nb::sig("def buffer_address(object: object, /) -> int"));
    module.def("json_object", json_object,
               nb::sig("def json_object(pairs: list[tuple[str, Any]], /) -> dict[str, Any]"));
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
