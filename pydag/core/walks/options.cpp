// SPDX-License-Identifier: Apache-2.0
#include "walks/options.h"

#include "base/constants.h"
#include "base/stack_room.h"

namespace pydag {

size_t index_of_option(PyObject *name) {
    const auto *const names = constants.option_names;
    return static_cast<size_t>(
        std::find_if(names, names + kNumOptions, [=](PyObject *option) { return is_same_name(option, name); }) - names);
}

FlattenOptions FlattenOptions::parse(PyObject *const *values) {
    require_stack_room();
    FlattenOptions options;
    const auto value = [=](OptionIndex index, PyObject *otherwise) {
        return nb::handle(values[index] ? values[index] : otherwise);
    };
    const nb::handle is_leaf = value(kIsLeaf, Py_None), none_is_leaf = value(kNoneIsLeaf, Py_False),
                     identity = value(kIdentity, constants.all);
    if (!is_leaf.is_none()) {
        if (!PyCallable_Check(is_leaf.ptr()))
            fail(PyExc_TypeError, "is_leaf must be callable or None, got %U.", short_repr(is_leaf).ptr());
        // A class would be called with each node, and nearly all of its instances are true.
        if (PyType_Check(is_leaf.ptr())) {
            const char *const name = reinterpret_cast<PyTypeObject *>(is_leaf.ptr())->tp_name;
            fail(PyExc_TypeError,
                 "is_leaf must be a predicate, got the class %s.\n  Write: lambda x: isinstance(x, %s).", name, name);
        }
        options.is_leaf = nb::borrow(is_leaf);
    }
    if (!has_truth(none_is_leaf))
        fail(PyExc_TypeError, "none_is_leaf must be a bool, got %U.", short_repr(none_is_leaf).ptr());
    options.none_is_leaf = checked(PyObject_IsTrue(none_is_leaf.ptr())) != 0;
    options.space = Namespace::get(value(kNamespace, constants.empty_text));
    options.space_is_ordered = options.space->is_ordered_itself();
    if (identity.is(nb::handle(constants.all))) return options;
    const auto is = [&](const char *text) {
        return PyUnicode_Check(identity.ptr()) && PyUnicode_CompareWithASCIIString(identity.ptr(), text) == 0;
    };
    if (is("all")) return options;
    if (!is("nodes")) fail(PyExc_ValueError, "identity must be 'all' or 'nodes', got %U.", short_repr(identity).ptr());
    options.leaf_identity = false;
    return options;
}

bool FlattenOptions::ask_to_keep(nb::handle object) const {
    const nb::object answer = call(is_leaf, object);
    if (!has_truth(answer))
        fail(PyExc_RuntimeError,
             "Unable to cast Python instance of type %R to C++ type 'bool': is_leaf must answer True or False, got %U.",
             class_of(answer).ptr(), short_repr(answer).ptr());
    return checked(PyObject_IsTrue(answer.ptr())) != 0;
}

void FlattenOptions::describe(StructureBuilder &builder, size_t num_leaves, bool has_registered) const {
    builder.num_leaves = static_cast<uint32_t>(num_leaves);
    builder.none_is_leaf = none_is_leaf;
    builder.namespace_ =
        has_registered || space_is_ordered ? nb::borrow(space->name()) : nb::borrow(constants.empty_text);
}

}  // namespace pydag
