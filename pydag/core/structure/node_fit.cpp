// SPDX-License-Identifier: Apache-2.0
#include "structure/node_fit.h"

#include "base/equality.h"
#include "base/error.h"
#include "structure/node_difference.h"
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

// Aux_data, or the values of meta fields; null for kinds that have neither.
PyObject *data_of(Kind kind, PyObject *const *refs) {
    return NodeRefs{kind, refs}.find(is_callback(kind) ? Role::kAuxData : Role::kMeta);
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
    if (!is_registered(a.kind)) return Fit::kFits;
    return are_equal_objects(data_of(a.kind, refs_a), data_of(b.kind, refs_b)) ? Fit::kFits : Fit::kOtherData;
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
    if (!is_callback(a.kind)) {
        const Words words = meta_difference(a.kind, refs_a, refs_b);
        return "Mismatch of meta fields; expected: " + words.first + ", got: " + words.second;
    }
    return "Mismatch custom node data; expected: " + text(short_repr(data_of(a.kind, refs_a))) +
           ", got: " + text(short_repr(data_of(b.kind, refs_b)));
}

}  // namespace pydag
