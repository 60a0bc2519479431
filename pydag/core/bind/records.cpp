// SPDX-License-Identifier: Apache-2.0
#include "spec/records.h"
#include "bind/bind.h"
#include "bind/operation.h"
#include "structure/listing.h"
#include "structure/paths.h"
#include "structure/select.h"

namespace pydag {
namespace {

nb::object text_of_step(nb::handle entry, nb::handle attribute) {
    return step_text({nb::borrow(attribute.is_none() ? entry : attribute), !attribute.is_none()});
}

// Python's JSON reader calls this for every object of a text. A Python function would take a tenth of the time of
// reading a file.
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

const Operation operations[] = {
    operation_of<node_kinds>("node_kinds"),           operation_of<nodes_of>("nodes_of"),
    operation_of<spec_from_nodes>("spec_from_nodes"), operation_of<check_rows>("check_rows"),
    operation_of<connections>("connections"),         operation_of<text_of_step>("step_text"),
    operation_of<buffer_address>("buffer_address"),   operation_of<json_object>("json_object"),
    operation_of<leaves_by_path>("leaves_by_path"),   operation_of<leaves_below>("leaves_below"),
};

}  // namespace

void bind_records(nb::module_ &module) { add_operations(module, operations); }

}  // namespace pydag
