// SPDX-License-Identifier: Apache-2.0
#include "structure/node_fit.h"

#include "base/equality.h"
#include "base/error.h"
#include "structure/class_difference.h"
#include "structure/node_refs.h"
#include "structure/paths.h"
#include "types/key_match.h"

namespace pydag {
namespace {

std::string text(nb::object str) { return text_of(str); }

// A builtin class by its bare name; a class of a kind that has many as its `repr` shows it.
std::string class_text(Kind kind, PyObject *const *refs) {
    const nb::object type = type_of(kind, refs);
    if (!has_many_classes(kind)) return text(checked(PyObject_GetAttrString(type.ptr(), "__name__")));
    return text(short_repr(type));
}

bool has_same_class(Node a, PyObject *const *refs_a, PyObject *const *refs_b) {
    if (!has_many_classes(a.kind)) return true;
    if (!is_registered(a.kind)) return TupleClassRefs{refs_a}.type() == TupleClassRefs{refs_b}.type();
    return same_registration(CustomRefs{refs_a}.registration_box(), CustomRefs{refs_b}.registration_box());
}

nb::handle data_of(Kind kind, PyObject *const *refs) {
    return traits(kind).entries == Entries::kCustom ? CustomRefs{refs}.aux_data() : FieldsRefs{refs}.meta();
}

Fit fit_data(Kind kind, PyObject *const *refs_a, PyObject *const *refs_b) {
    if (!is_registered(kind)) return Fit::kFits;
    return are_equal_objects(data_of(kind, refs_a), data_of(kind, refs_b)) ? Fit::kFits : Fit::kOtherData;
}

// Which of several meta fields differ, by their names; empty where there is one.
std::string differing_fields(PyObject *const *refs_a, PyObject *const *refs_b) {
    constexpr int kMost = 4;
    const nb::object names = node_registration(refs_a).meta_names;
    const FieldsRefs a{refs_a}, b{refs_b};
    const Py_ssize_t count = PyTuple_GET_SIZE(names.ptr());
    if (count < 2 || PyTuple_GET_SIZE(a.meta()) != count || PyTuple_GET_SIZE(b.meta()) != count) return "";
    std::string found;
    int num_found = 0;
    for (Py_ssize_t i = 0; i < count && num_found < kMost; ++i) {
        PyObject *const one = a.meta_values()[i], *const other = b.meta_values()[i];
        if (are_equal_objects(one, other)) continue;
        found += (num_found++ ? "; " : "") + text(nb::borrow(PyTuple_GET_ITEM(names.ptr(), i))) + ": " +
                 text(short_repr(one)) + " and " + text(short_repr(other));
    }
    return num_found ? ", different field(s): {" + found + "}" : "";
}

const char *noun_of(Kind kind) {
    if (is_registered(kind)) return "Custom type";
    if (!has_many_classes(kind)) return traits(kind).name;
    return traits(kind).entries == Entries::kTupleFields ? "namedtuple" : "PyStructSequence";
}

}  // namespace

Fit fit_node(Node a, PyObject *const *refs_a, Node b, PyObject *const *refs_b, std::vector<uint32_t> &order) {
    order.clear();
    const bool are_mappings = traits(a.kind).is_mapping && traits(b.kind).is_mapping;
    if (a.kind != b.kind && !are_mappings) return Fit::kOtherKind;
    const bool has_other_class = !are_mappings && !has_same_class(a, refs_a, refs_b);
    if (has_other_class && is_registered(a.kind)) return Fit::kOtherClass;
    if (!has_keys(a.kind) && a.count != b.count) return Fit::kOtherCount;
    if (has_other_class) return Fit::kOtherClass;
    if (has_keys(a.kind) && !match_keys(keys_box_of(a.kind, refs_a), keys_box_of(b.kind, refs_b), order))
        return Fit::kOtherKeys;
    return fit_data(a.kind, refs_a, refs_b);
}

std::string misfit(Fit fit, Node a, PyObject *const *refs_a, Node b, PyObject *const *refs_b) {
    if (fit == Fit::kOtherKind)
        return "PyDagSpecs have incompatible node types; expected type: " + class_text(a.kind, refs_a) +
               ", got: " + class_text(b.kind, refs_b);
    if (fit == Fit::kOtherCount)
        return std::string(noun_of(a.kind)) + " arity mismatch; expected: " + std::to_string(a.count) +
               ", got: " + std::to_string(b.count);
    if (fit == Fit::kOtherClass)
        return std::string(is_registered(a.kind) ? "Custom node" : noun_of(a.kind)) +
               " type mismatch; expected type: " + class_text(a.kind, refs_a) +
               ", got type: " + class_text(b.kind, refs_b) +
               class_difference(type_of(a.kind, refs_a), type_of(b.kind, refs_b));
    if (fit == Fit::kOtherKeys)
        return std::string(traits(a.kind).is_mapping ? "dictionary" : "fields") + " key mismatch; " +
               key_mismatch(node_keys(a.kind, refs_a), node_keys(b.kind, refs_b));
    const bool has_fields = is_registered(a.kind) && has_keys(a.kind);
    return std::string(has_fields ? "Mismatch of meta fields" : "Mismatch custom node data") +
           "; expected: " + text(short_repr(data_of(a.kind, refs_a))) +
           ", got: " + text(short_repr(data_of(b.kind, refs_b))) + (has_fields ? differing_fields(refs_a, refs_b) : "");
}

}  // namespace pydag
