// SPDX-License-Identifier: Apache-2.0
#include "walks/ref_contents.h"

#include "base/constants.h"

namespace pydag {
namespace {

bool is_none_at(nb::handle object, PyObject *name) { return checked(PyObject_GetAttr(object.ptr(), name)).is_none(); }

}  // namespace

bool RefAccess::may_read() const { return checked(PyObject_IsTrue(call_array(is_top_level, nullptr, 0).ptr())) == 1; }

nb::object RefAccess::content(nb::handle ref) const {
    const nb::object type = checked(PyObject_GetAttr(ref.ptr(), constants.aval));
    if (!is_none_at(type, constants.kind) || !is_none_at(type, constants.memory_space)) return nb::object();
    const nb::object inner = checked(PyObject_GetAttr(ref.ptr(), constants.refs));
    nb::object content = checked(PyObject_GetAttr(inner.ptr(), constants.buf));
    if (as_object(Py_TYPE(content.ptr())) != array_class.ptr()) return nb::object();
    const nb::object sharding = checked(PyObject_GetAttr(content.ptr(), constants.sharding));
    return as_object(Py_TYPE(sharding.ptr())) == sharding_class.ptr() ? content : nb::object();
}

nb::object make_ref_access(nb::handle ref_class, nb::handle array_class, nb::handle sharding_class,
                           nb::handle is_top_level, nb::handle new_ref) {
    return RefAccessBox::make(nb::borrow(ref_class), nb::borrow(array_class), nb::borrow(sharding_class),
                              nb::borrow(is_top_level), nb::borrow(new_ref));
}

void write_content(nb::handle ref, nb::handle content) {
    const nb::object inner = checked(PyObject_GetAttr(ref.ptr(), constants.refs));
    checked(PyObject_SetAttr(inner.ptr(), constants.buf, content.ptr()));
}

}  // namespace pydag
