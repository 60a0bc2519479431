// SPDX-License-Identifier: Apache-2.0
#include "structure/node_difference.h"

#include "base/equality.h"
#include "base/error.h"
#include "structure/compare.h"
#include "structure/node_refs.h"
#include "structure/paths.h"
#include "types/keys.h"
#include "types/registry.h"

#include <algorithm>
#include <vector>

namespace pydag {
namespace {

std::string brief(nb::handle object) { return text_of(short_repr(object)); }

constexpr const char *kUnknown = "?";
std::string attribute(nb::handle object, const char *name) {
    const nb::object value = nb::steal(PyObject_GetAttrString(object.ptr(), name));
    PyErr_Clear();  // a metaclass may say anything
    return value.is_valid() && PyUnicode_Check(value.ptr()) ? text_of(value) : kUnknown;
}

std::string name_of(Kind kind, PyObject *const *refs) {
    const nb::object type = type_of(kind, refs);
    const std::string module = attribute(type, "__module__"), name = attribute(type, "__qualname__");
    return module == "builtins" || module == "collections" ? name : module + "." + name;
}

// A list.
nb::object keys_missing_from(const Keys &others, const Keys &keys) {
    const nb::object known = checked(PySet_New(others.tuple().ptr()));
    nb::object missing = checked(PyList_New(0));
    for (uint32_t i = 0; i < keys.size(); ++i)
        if (!checked(PySet_Contains(known.ptr(), keys.key(i)))) checked(PyList_Append(missing.ptr(), keys.key(i)));
    return missing;
}

Words key_difference(Kind kind, PyObject *const *refs_a, PyObject *const *refs_b) {
    const Keys &a = node_keys(kind, refs_a), &b = node_keys(kind, refs_b);
    const std::string name = name_of(kind, refs_a), noun = traits(kind).is_mapping ? "key" : "field";
    const auto words = [&](const Keys &keys, nb::handle own) {
        const std::string size = std::to_string(keys.size()) + " " + noun + (keys.size() == 1 ? "" : "s");
        return name + " of " + size + (PyList_GET_SIZE(own.ptr()) > 0 ? ", only here " + brief(own) : "");
    };
    const nb::object only_a = keys_missing_from(b, a), only_b = keys_missing_from(a, b);
    const bool have_same_keys = PyList_GET_SIZE(only_a.ptr()) == 0 && PyList_GET_SIZE(only_b.ptr()) == 0;
    for (uint32_t i = 0; have_same_keys && i < std::min(a.size(), b.size()); ++i) {
        if (are_equal_objects(a.key(i), b.key(i))) continue;
        const std::string text = name + " whose " + noun + " at position " + std::to_string(i) + " is ";
        return {text + brief(a.key(i)), text + brief(b.key(i))};
    }
    return {words(a, only_a), words(b, only_b)};
}

// Of two nodes of one kind and class, whose references of this role differ.
Words ref_difference(Kind kind, Role role, PyObject *const *refs_a, PyObject *const *refs_b) {
    if (role == Role::kMeta) return meta_difference(kind, refs_a, refs_b);
    if (role == Role::kRegistration) {
        const auto registered = [&](PyObject *const *refs) {
            return name_of(kind, refs) + " as registered in namespace " + brief(node_registration(refs).namespace_);
        };
        const std::string a = registered(refs_a), b = registered(refs_b);
        return {a, a == b ? b + ", by another registration" : b};
    }
    const auto words = [&](PyObject *const *refs) {
        const std::string name = name_of(kind, refs);
        const char *const what = role == Role::kFactory  ? " with the factory "
                                 : role == Role::kMaxlen ? " with maxlen "
                                                         : " with the aux_data ";
        return name + what + brief(NodeRefs{kind, refs}.find(role));
    };
    return {words(refs_a), words(refs_b)};
}

// The first role whose references tell two nodes of one kind apart; kNothing if none does.
Role differing_role(Kind kind, PyObject *const *refs_a, PyObject *const *refs_b) {
    const NodeRefs a{kind, refs_a}, b{kind, refs_b};
    for (uint32_t i = 0; i < a.size(); ++i)
        if (is_compared(a.role(i)) && !equal_refs(a.role(i), a.ref(i), b.ref(i))) return a.role(i);
    return Role::kNothing;
}

std::string in_order(Kind kind, PyObject *const *refs, nb::handle keys) {
    const std::string name = name_of(kind, refs);
    return (traits(kind).is_mapping ? "a " + name + " filled" : name + " whose attributes were set") +
           " in the order " + brief(checked(PySequence_List(keys.ptr())));
}

std::string with_type(nb::handle value) {
    const bool is_plain = PyTuple_Check(value.ptr()) || PyList_Check(value.ptr()) || PyDict_Check(value.ptr());
    return brief(value) + (is_plain ? "" : std::string(" of type ") + Py_TYPE(value.ptr())->tp_name);
}

}  // namespace

std::string outline(Node node, PyObject *const *refs) {
    if (node.is_leaf() || node.is_none()) return traits(node.kind).name;
    const std::string name = name_of(node.kind, refs);
    if (!has_keys(node.kind)) return name + " of " + std::to_string(node.count);
    const char *const noun = traits(node.kind).is_mapping ? " with the keys " : " with the fields ";
    return name + noun + brief(checked(PySequence_List(node_keys(node.kind, refs).order().ptr())));
}

Words meta_difference(Kind kind, PyObject *const *refs_a, PyObject *const *refs_b) {
    const nb::object names = node_registration(refs_a).meta_names;
    const FieldsRefs fields_a{refs_a}, fields_b{refs_b};
    const std::string name = name_of(kind, refs_a);
    const Py_ssize_t count = std::min(PyTuple_GET_SIZE(fields_a.meta()), PyTuple_GET_SIZE(fields_b.meta()));
    for (Py_ssize_t i = 0; i < std::min(count, PyTuple_GET_SIZE(names.ptr())); ++i) {
        const nb::handle a = fields_a.meta_values()[i], b = fields_b.meta_values()[i];
        if (are_equal_objects(a, b)) continue;
        const std::string field = name + " with " + text_of(PyTuple_GET_ITEM(names.ptr(), i)) + "=";
        return {field + brief(a), field + brief(b)};
    }
    return {name + " with the meta fields " + brief(fields_a.meta()),
            name + " with the meta fields " + brief(fields_b.meta())};
}

std::string class_difference(nb::handle expected, nb::handle found) {
    if (expected.is(found)) return "; the class was registered anew between the two";
    const std::string name = attribute(expected, "__qualname__");
    if (name == kUnknown || name != attribute(found, "__qualname__")) return "";
    if (attribute(expected, "__module__") != attribute(found, "__module__")) return "";
    const std::string last = name.substr(name.rfind('.') + 1);
    return "; " + last +
           " was defined again after one of the two objects was made: make that anew, or set obj.__class__ = " + last;
}

bool are_alike(Node a, PyObject *const *refs_a, Node b, PyObject *const *refs_b) {
    return a.kind == b.kind && a.count == b.count && differing_role(a.kind, refs_a, refs_b) == Role::kNothing;
}

Words difference(Node a, PyObject *const *refs_a, Node b, PyObject *const *refs_b) {
    const Kind kind = a.kind;
    const Words outlines = {outline(a, refs_a), outline(b, refs_b)};
    if (kind != b.kind || num_refs(a) == 0) return outlines;
    const nb::object type = type_of(kind, refs_a), other = type_of(kind, refs_b);
    if (!type.is(other)) return {outlines.first, outlines.second + class_difference(type, other)};
    if (has_keys(kind) && !equal_keys(keys_box_of(kind, refs_a), keys_box_of(kind, refs_b)))
        return key_difference(kind, refs_a, refs_b);
    if (a.count != b.count) return outlines;
    const Role role = differing_role(kind, refs_a, refs_b);
    // kNothing: a user's `==` has given another answer than before.
    return role == Role::kNothing ? outlines : ref_difference(kind, role, refs_a, refs_b);
}

Words told_apart_by(Node node, PyObject *const *refs_a, PyObject *const *refs_b) {
    const NodeRefs a{node.kind, refs_a}, b{node.kind, refs_b};
    for (uint32_t i = 0; i < a.size(); ++i) {
        if (!is_compared(a.role(i)) || are_interchangeable(a.ref(i), b.ref(i))) continue;
        const bool are_keys = KeysBox::check(a.ref(i));
        const bool differ_in_order = are_keys && !have_same_order(KeysBox::of(a.ref(i)), KeysBox::of(b.ref(i)));
        const auto words = [&](const NodeRefs &refs) {
            const nb::object ref = are_keys ? KeysBox::of(refs.ref(i)).tuple() : nb::borrow(refs.ref(i));
            if (differ_in_order) return in_order(node.kind, refs.at, ref);
            return outline({node.kind, false, 0, node.count}, refs.at) + ", with " + with_type(ref);
        };
        return {words(a), words(b)};
    }
    return {outline(node, refs_a), outline(node, refs_b)};
}

}  // namespace pydag
