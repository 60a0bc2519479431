// SPDX-License-Identifier: Apache-2.0
#include "structure/namespaces.h"

#include "base/error.h"
#include "structure/cursor.h"
#include "structure/node_refs.h"

namespace pydag {
namespace {

bool is_empty(nb::handle name) { return PyUnicode_GET_LENGTH(name.ptr()) == 0; }

}  // namespace

bool are_compatible(nb::handle a, nb::handle b) {
    return is_empty(a) || is_empty(b) || PyUnicode_Compare(a.ptr(), b.ptr()) == 0;
}

void check_registrations(const Structure &structure, nb::handle namespace_, const char *purpose) {
    if (!is_empty(structure.namespace_) || is_empty(namespace_)) return;
    const NamespaceRef space = Namespace::get(namespace_);
    for (Cursor at(structure); at.is_at_node(); at.step()) {
        if (!is_registered(at.kind())) continue;
        PyObject *const box = CustomRefs{at.refs()}.registration_box();
        PyObject *const type = RegistrationBox::of(box).type.ptr();
        const TypeInfo info = space->find(reinterpret_cast<PyTypeObject *>(type));
        if (info.registration && same_registration(info.registration, box)) continue;
        fail(PyExc_ValueError,
             "PyDagSpecs cannot be %s: custom PyTree type %R no longer resolves to its original registration in "
             "namespace %R.",
             purpose, type, namespace_.ptr());
    }
}

nb::object merge_namespaces(const Structure &a, const Structure &b) {
    if (a.none_is_leaf != b.none_is_leaf) fail(PyExc_ValueError, "PyDagSpecs must have the same none_is_leaf value.");
    if (!are_compatible(a.namespace_, b.namespace_))
        fail(PyExc_ValueError, "PyDagSpecs must have the same namespace, got %R vs. %R.", a.namespace_, b.namespace_);
    nb::object namespace_ = nb::borrow(is_empty(a.namespace_) ? b.namespace_ : a.namespace_);
    check_registrations(a, namespace_, "merged");
    check_registrations(b, namespace_, "merged");
    return namespace_;
}

}  // namespace pydag
