// SPDX-License-Identifier: Apache-2.0
#include "walks/walks.h"

#include "base/interrupt.h"
#include "base/tuples.h"
#include "nodes/open.h"
#include "spec/spec.h"
#include "structure/paths.h"

namespace pydag {

bool is_leaf(nb::handle object, const FlattenOptions &options) {
    if (options.is_leaf.is_valid() && options.ask_to_keep(object)) return true;
    const Kind kind = options.space->find_class_of(object.ptr()).kind;
    return is_leaf(kind) || (is_none(kind) && options.none_is_leaf);
}

bool are_leaves(nb::handle iterable, const FlattenOptions &options) {
    const nb::object iterator = checked(PyObject_GetIter(iterable.ptr()));
    while (PyObject *const item = PyIter_Next(iterator.ptr())) {
        const nb::object owned = nb::steal(item);
        interruptible_step();
        if (!is_leaf(owned, options)) return false;
    }
    if (PyErr_Occurred()) nb::raise_python_error();
    return true;
}

nb::object open_one_level(nb::handle object, const FlattenOptions &options) {
    StructureBuilder builder;
    Stack children;
    OpenOptions open_options{nullptr};
    options.prepare(open_options);
    const TypeInfo info = find_opened(object.ptr(), *options.space);
    const nb::object registration = nb::borrow(info.registration);
    builder.add(info.kind, 0);
    const uint32_t count = open_node(object.ptr(), info, open_options, children, builder.refs);
    builder.nodes[0].count = count;
    nb::object entries = checked(PyTuple_New(count));
    for (uint32_t i = 0; i < count; ++i) {
        PyTuple_SET_ITEM(entries.ptr(), i, entry_of(info.kind, builder.refs.data(), i).release().ptr());
        builder.add(Kind::kLeaf, 0);
    }
    options.describe(builder, count, registration.is_valid());
    std::reverse(children.data(), children.data() + count);  // a stack has the last one first
    return tuple_of(children.take_list(), std::move(entries), make_spec(Spec(std::move(builder))));
}

}  // namespace pydag
