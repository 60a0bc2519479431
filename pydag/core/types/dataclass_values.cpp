// SPDX-License-Identifier: Apache-2.0
#include "types/dataclass_values.h"

#include "base/buffer.h"
#include "base/constants.h"

namespace pydag {
namespace {

bool is_true(nb::handle object, PyObject *name) {
    return checked(PyObject_IsTrue(checked(PyObject_GetAttr(object.ptr(), name)).ptr())) != 0;
}

// Whether a class has a method that `@dataclass` wrote: such a function stands in no file.
bool has_written(const nb::object &names, PyObject *name) {
    const nb::object method = find_in_dict(names, name);
    if (!method.is_valid() || !PyFunction_Check(method.ptr())) return false;
    const auto *const code = reinterpret_cast<PyCodeObject *>(PyFunction_GET_CODE(method.ptr()));
    return PyUnicode_CompareWithASCIIString(code->co_filename, "<string>") == 0;
}

}  // namespace

nb::object dataclass_values(PyObject *object) {
    if (!is_heap_type(Py_TYPE(object))) return nb::object();
    const nb::object type = class_of(object);
    const nb::object names = dict_of_class(Py_TYPE(object));
    const nb::object parameters = find_in_dict(names, constants.dataclass_params);
    if (!parameters.is_valid() || !is_true(parameters, constants.frozen) || !is_true(parameters, constants.eq) ||
        !has_written(names, constants.eq_method) || !has_written(names, constants.hash_method))
        return nb::object();
    const nb::object fields = checked(PySequence_Tuple(call(nb::handle(constants.dataclass_fields), type).ptr()));
    RefBuffer<8> values;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(fields.ptr()); ++i) {
        const nb::handle field(PyTuple_GET_ITEM(fields.ptr(), i));
        if (!is_true(field, constants.compare)) continue;
        const nb::object name = checked(PyObject_GetAttr(field.ptr(), constants.name));
        values.push_new(checked(PyObject_GetAttr(object, name.ptr())));
    }
    return values.take_tuple();
}

}  // namespace pydag
