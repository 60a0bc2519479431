// SPDX-License-Identifier: Apache-2.0
#include "structure/class_difference.h"

#include "base/error.h"

namespace pydag {
namespace {

// "" where a metaclass has no such text.
std::string attribute(nb::handle type, const char *name) {
    const nb::object value = nb::steal(PyObject_GetAttrString(type.ptr(), name));
    PyErr_Clear();
    return value.is_valid() && PyUnicode_Check(value.ptr()) ? text_of(value) : "";
}

}  // namespace

std::string class_difference(nb::handle expected, nb::handle found) {
    if (expected.is(found)) return kRegisteredAnew;
    const std::string name = attribute(expected, "__qualname__");
    if (name.empty() || name != attribute(found, "__qualname__")) return "";
    if (attribute(expected, "__module__") != attribute(found, "__module__")) return "";
    const std::string last = name.substr(name.rfind('.') + 1);
    return "; " + last +
           " was defined again after one of the two objects was made: make that anew, or set obj.__class__ = " + last;
}

}  // namespace pydag
