// SPDX-License-Identifier: Apache-2.0
#include "base/constants.h"

namespace pydag {
namespace {

PyObject *imported(const char *module, const char *name) {
    return nb::object(nb::module_::import_(module).attr(name)).release().ptr();
}
PyTypeObject *imported_class(const char *module, const char *name) {
    return reinterpret_cast<PyTypeObject *>(imported(module, name));
}
PyObject *interned(const char *text) { return checked(PyUnicode_InternFromString(text)).release().ptr(); }

PyTypeObject *new_class() {
    PyObject *const type = reinterpret_cast<PyObject *>(&PyType_Type);
    return reinterpret_cast<PyTypeObject *>(
        checked(PyObject_CallFunction(type, "s(){}", "PythonClass")).release().ptr());
}

}  // namespace

void make_constants() {
    Constants made = {};
    made.default_dict = imported_class("collections", "defaultdict");
    made.deque = imported_class("collections", "deque");
    made.partial = imported_class("functools", "partial");
    made.frozen_dict = frozen_dict_type();
    made.python_class = new_class();
    made.accessor = imported("optree", "PyTreeAccessor");
    made.sequence_entry = imported("optree", "SequenceEntry");
    made.mapping_entry = imported("optree", "MappingEntry");
    made.namedtuple_entry = imported("optree", "NamedTupleEntry");
    made.structseq_entry = imported("optree", "StructSequenceEntry");
    made.attribute_entry = imported("optree", "GetAttrEntry");
    const nb::object kinds = nb::steal(imported("optree", "PyTreeKind"));
    for (size_t i = 0; i < kNumTreeKinds; ++i)
        made.tree_kinds[i] = call(kinds, checked(PyLong_FromSize_t(i))).release().ptr();
    made.new_object = imported("copyreg", "__newobj__");
    made.short_repr = imported("pydag.structure.text", "short_repr");
    made.bounded_repr = imported("pydag.structure.text", "bounded_repr");
    made.unopened_hint = imported("pydag.structure.text", "unopened_hint");
    made.dataclass_fields = imported("dataclasses", "fields");
    made.spec_shared = imported("pydag.structure.spec_methods", "shared_of_spec");
    made.spec_to_json = imported("pydag.structure.spec_methods", "to_json");
    made.spec_from_json = imported("pydag.structure.spec_methods", "from_json");
    made.no_items = checked(PyTuple_New(0)).release().ptr();
    made.empty_text = interned("");
    made.argument_names = checked(Py_BuildValue("(ss)", "args", "kwargs")).release().ptr();
    const char *const options[] = {"is_leaf", "none_is_leaf", "namespace", "identity"};
    for (size_t i = 0; i < std::size(options); ++i) made.option_names[i] = interned(options[i]);
#define PYDAG_MAKE(member, text) made.member = interned(text)
    PYDAG_NAMES(PYDAG_MAKE);
#undef PYDAG_MAKE
    constants = made;
}

}  // namespace pydag
