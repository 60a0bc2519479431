// SPDX-License-Identifier: Apache-2.0
#include "structure/text.h"

#include "base/constants.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "structure/cursor.h"
#include "structure/node_refs.h"
#include "structure/paths.h"
#include "types/keys.h"
#include "types/registry.h"

namespace pydag {
namespace {

// How keys, aux_data and the like are shown.
using Show = std::string (*)(nb::handle object);
// Whole, except for nested lists that would be exponentially long.
std::string show_whole(nb::handle object) {
    PyTypeObject *const type = Py_TYPE(object.ptr());
    const bool is_simple =
        type == &PyUnicode_Type || type == &PyLong_Type || object.is_none() || PyType_Check(object.ptr());
    return text_of(is_simple ? checked(PyObject_Repr(object.ptr())) : call(nb::handle(constants.bounded_repr), object));
}
std::string show_briefly(nb::handle object) { return text_of(short_repr(object)); }

std::string name_of(nb::handle type) { return text_of(checked(PyObject_GetAttrString(type.ptr(), "__name__"))); }

std::string qualified_name_of(nb::handle type) {
    return text_of(checked(PyObject_GetAttrString(type.ptr(), "__module__"))) + "." +
           text_of(checked(PyObject_GetAttrString(type.ptr(), "__qualname__")));
}

// The names of the items are read from the class each time.
void check_fields(Kind kind, PyObject *cls, uint32_t count) {
    const Py_ssize_t size = PyTuple_GET_SIZE(fields_of(kind, cls).ptr());
    if (size == static_cast<Py_ssize_t>(count)) return;
    fail(PyExc_ValueError,
         "Number of fields (%zd) of namedtuple type %R does not match the arity (%zu) of the treespec node. Its "
         "`_fields` must have been changed since the spec was made.",
         size, cls, size_t{count});
}

// "maxlen=3", or "name=value" for each meta field, with a comma before all but the first option.
std::string options_text(Kind kind, PyObject *const *refs, bool begins, Show show) {
    const auto option = [&](const std::string &name, PyObject *value) {
        const std::string comma = std::exchange(begins, false) ? "" : ", ";
        return comma + name + "=" + show(value);
    };
    const NodeRefs node{kind, refs};
    if (PyObject *const maxlen = node.find(Role::kMaxlen)) return maxlen == Py_None ? "" : option("maxlen", maxlen);
    std::string text;
    const nb::object names = node_registration(refs).meta_names;
    const FieldsRefs fields{refs};
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(fields.meta()); ++i)
        text += option(text_of(PyTuple_GET_ITEM(names.ptr(), i)), fields.meta_values()[i]);
    return text;
}

// What one of the marks in a pattern of kind.h stands for.
std::string mark_text(char mark, Kind kind, PyObject *const *refs, uint32_t count, Show show) {
    const NodeRefs node{kind, refs};
    if (mark == 'n') return name_of(type_of(kind, refs));
    if (mark == 'q') return qualified_name_of(type_of(kind, refs));
    if (mark == 'd') {
        PyObject *const factory = node.find(Role::kFactory);
        return show(factory ? factory : node.find(Role::kAuxData));
    }
    if (mark == 'o') return options_text(kind, refs, count == 0, show);
    return count == 1 ? "," : "";
}

std::string pattern_text(const char *pattern, Kind kind, PyObject *const *refs, uint32_t count, Show show) {
    std::string text;
    for (; *pattern; ++pattern) {
        if (*pattern != '%') text += *pattern;
        else text += mark_text(*++pattern, kind, refs, count, show);
    }
    return text;
}

std::string opening(Kind kind, PyObject *const *refs, uint32_t count, Show show) {
    if (traits(kind).entries == Entries::kTupleFields) check_fields(kind, TupleClassRefs{refs}.type(), count);
    const KindText &patterns = kind_text(kind);
    const bool is_empty = count == 0 && patterns.empty;
    return pattern_text(is_empty ? patterns.empty : patterns.open, kind, refs, count, show);
}

std::string closing(Kind kind, PyObject *const *refs, uint32_t count, Show show) {
    const KindText &patterns = kind_text(kind);
    return count == 0 && patterns.empty ? "" : pattern_text(patterns.close, kind, refs, count, show);
}

std::string label(Kind kind, PyObject *const *refs, uint32_t child, Show show) {
    const Entries entries = traits(kind).entries;
    if (entries == Entries::kKeys) return show(entry_of(kind, refs, child)) + ": ";
    if (entries == Entries::kIndex || entries == Entries::kCustom) return "";
    const Step step = step_of(kind, refs, child);
    if (step.is_attribute) return text_of(step.entry) + "=";
    return entries == Entries::kStructFields ? "<unnamed@" + std::to_string(child) + ">=" : "";
}

// ", in the order ['b', 'a']" if the order of insertion isn't the order of traversal.
std::string order_text(Kind kind, PyObject *const *refs, Show show) {
    if (!has_keys(kind) || node_keys(kind, refs).in_order) return "";
    return ", in the order " + show(checked(PySequence_List(node_keys(kind, refs).tuple().ptr())));
}

std::string nodes_text(const Structure &structure, Show show, bool with_orders) {
    std::string text;
    Nesting<ChildOf> around;
    const auto close = [&](const ChildOf &all) {  // all of its children have been passed
        if (with_orders) text += order_text(all.kind, all.refs, show);
        text += closing(all.kind, all.refs, all.child, show);
    };
    for (Cursor at(structure); at.is_at_node(); at.step()) {
        interruptible_step();
        const Node node = at.node();
        PyObject *const *const refs = at.refs();
        if (!around.empty()) {
            const ChildOf parent = around.innermost().pass();
            if (parent.child > 0) text += ", ";
            text += label(parent.kind, parent.refs, parent.child, show);
        }
        if (node.is_anchor) text += "&" + std::to_string(at.number()) + " ";
        if (node.is_alias()) text += "*" + std::to_string(node.count);
        else text += opening(node.kind, refs, node.count, show);
        if (node.is_leaf() || node.is_none() || node.is_alias()) around.add_closed(close);
        else around.add({node.kind, refs}, node.count, close);
    }
    return text;
}

}  // namespace

std::string spec_text(const Structure &structure, SpecText which) {
    const Show show = which == SpecText::kBrief ? show_briefly : show_whole;
    if (structure.num_nodes == 0) return "PyDagSpec(<empty>)";
    std::string text = "PyDagSpec(" + nodes_text(structure, show, which == SpecText::kWithOrders);
    if (structure.none_is_leaf) text += ", NoneIsLeaf";
    if (PyUnicode_GET_LENGTH(structure.namespace_) > 0) text += ", namespace=" + show(structure.namespace_);
    return text + ")";
}

}  // namespace pydag
