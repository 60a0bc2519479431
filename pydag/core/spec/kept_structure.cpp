// SPDX-License-Identifier: Apache-2.0
#include "spec/kept_structure.h"

#include "base/constant_size.h"
#include "base/constants.h"
#include "base/object_set.h"
#include "base/weak_reference.h"
#include "structure/cursor.h"
#include "structure/node_refs.h"
#include "types/fields.h"
#include "types/key_table.h"

#include <new>
#include <string_view>
#include <utility>

namespace pydag {
namespace {

constexpr size_t kMostBytes = size_t{50} << 20, kMostBytesOfAnswers = size_t{16} << 10;

bool is_users_class(PyObject *object) {
    return PyType_Check(object) && is_heap_type(reinterpret_cast<PyTypeObject *>(object));
}

// What an imported module has under the name of a function, a class or what `functools.wraps` has dressed; null if
// there is nothing, and for the program itself, in which names come and go. Runs no Python code.
nb::object attribute_of_module(PyObject *object) {
    nb::object module, name;
    if (PyFunction_Check(object)) {
        const auto *const function = reinterpret_cast<PyFunctionObject *>(object);
        if (function->func_module) module = nb::borrow(function->func_module);
        name = nb::borrow(function->func_qualname);
    } else {
        const bool is_class = PyType_Check(object);
        const nb::object dict =
            is_class ? dict_of_class(reinterpret_cast<PyTypeObject *>(object)) : instance_dict(object);
        if (!dict.is_valid()) return nb::object();
        module = find_by_address(dict.ptr(), constants.module);
        name = is_class ? nb::borrow(reinterpret_cast<PyHeapTypeObject *>(object)->ht_qualname)
                        : find_by_address(dict.ptr(), constants.qualified_name);
    }
    const auto is_text = [](const nb::object &text) { return text.is_valid() && is_exact_str(text.ptr()); };
    if (!is_text(module) || !is_text(name) || PyUnicode_CompareWithASCIIString(module.ptr(), "__main__") == 0)
        return nb::object();
    const nb::object loaded = find_in_dict(nb::borrow(PyImport_GetModuleDict()), module);
    if (!loaded.is_valid() || !PyModule_CheckExact(loaded.ptr())) return nb::object();
    return find_in_dict(nb::borrow(PyModule_GetDict(loaded.ptr())), name);
}
// Whether an object lives as long as its module, whoever else holds it.
bool lives_in_module(PyObject *object) { return attribute_of_module(object).is(object); }

// Whether an object is a data type of NumPy's that holds no object of the user's.
bool is_plain_dtype(PyObject *object) {
    constexpr std::string_view kBegin = "numpy.dtype";
    PyTypeObject *const type = Py_TYPE(object);
    if (is_heap_type(type) || std::string_view(type->tp_name).substr(0, kBegin.size()) != kBegin) return false;
    for (PyObject *const name : {constants.metadata, constants.dtype_fields})
        if (!checked(PyObject_GetAttr(object, name)).is_none()) return false;
    return true;
}

// About how many bytes a reference keeps alive; 0 if it must not be kept. Looks into tuples, down to this depth.
// `stand_in`: of aux_data, that which opens the node: the library's own marks may be kept.
size_t size_to_keep(PyObject *ref, int depth = 1, const StandIn *stand_in = nullptr) {
    constexpr size_t kSizeOfMark = 512;
    if (KeysBox::check(ref)) return KeysBox::of(ref).num_bytes();
    if (RegistrationBox::check(ref)) return 1;
    if (stand_in && stand_in->is_mark(ref)) return kSizeOfMark;
    if (PyType_Check(ref)) return is_users_class(ref) && !lives_in_module(ref) ? 0 : 1;
    if (!PyTuple_CheckExact(ref)) {
        const size_t size = small_constant_size(ref);
        return size != 0 ? size : lives_in_module(ref) || is_plain_dtype(ref) ? 1 : 0;
    }
    size_t total = 64;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(ref); ++i) {
        const size_t size = depth == 0 ? 0 : size_to_keep(PyTuple_GET_ITEM(ref, i), depth - 1, stand_in);
        if (size == 0) return 0;
        total += size;
    }
    return total;
}

// Whether a node that is asked says this itself.
bool is_answer(Role role) {
    return role == Role::kAuxData || role == Role::kEntries || role == Role::kSortedKeys || role == Role::kKeys;
}

Holdings find_holdings(const Structure &structure) {
    if (structure.num_nodes * sizeof(Node) > kMostBytes) return {};
    Holdings holdings;
    ObjectSet met;
    size_t total = 0;
    for (Cursor at(structure); at.is_at_node(); at.step()) {
        const NodeRefs node{at.kind(), at.refs()};
        const bool is_asked = must_ask(at.node(), at.refs());
        for (uint32_t i = 0; i < node.size(); ++i) {
            PyObject *const ref = node.ref(i);
            if (node.role(i) == Role::kClass && is_users_class(ref)) {
                holdings.classes.push_back({at.extent().ref + i, checked(PyWeakref_NewRef(ref, nullptr))});
                continue;
            }
            if (is_asked && is_answer(node.role(i))) {
                holdings.answers.push_back(at.extent().ref + i);
                continue;
            }
            const StandIn *const stand_in =
                node.role(i) == Role::kAuxData ? node_registration(node.at).stand_in.get() : nullptr;
            const size_t size = size_to_keep(ref, stand_in ? 3 : 1, stand_in);
            if (size == 0) return {};
            if (met.add(ref)) total += size;
        }
    }
    holdings.may_be_kept = true;
    holdings.num_bytes = structure.num_nodes * sizeof(Node) + structure.num_refs * sizeof(PyObject *) +
                         holdings.classes.size() * sizeof(Holdings::Class) + total;
    return holdings;
}

// Gives up the references to these classes; false if the structure is the only owner of one of them.
bool let_go(const Structure &structure, const std::vector<Holdings::Class> &classes) {
    for (size_t i = 0; i < classes.size(); ++i) {
        if (decref_unless_last(structure.all_refs()[classes[i].ref])) continue;
        while (i-- > 0) incref(structure.all_refs()[classes[i].ref]);
        return false;
    }
    return true;
}

// Moves answers into `left_out`, except for small constants, and puts None, or no keys, in their places. Returns the
// size of the answers that stay.
size_t leave_out(Spec &spec, const std::vector<uint32_t> &answers, std::vector<nb::object> &left_out) {
    size_t num_bytes = 0;
    PyObject *harmless = Py_None;  // the last one that stays; mostly the next node says the same
    nb::object no_keys;
    for (const uint32_t i : answers) {
        PyObject *const ref = spec.structure().all_refs()[i];
        if (ref == Py_None || ref == harmless) continue;
        const bool are_keys = KeysBox::check(ref);
        const size_t size = are_keys ? 0 : size_to_keep(ref);
        if (size != 0 && num_bytes + size <= kMostBytesOfAnswers) {
            num_bytes += size;
            harmless = ref;
            continue;
        }
        if (are_keys && !no_keys.is_valid()) no_keys = keys_of(nullptr, 0, 0);
        left_out.push_back(spec.replace_ref(i, are_keys ? no_keys : nb::none()));
    }
    return num_bytes;
}

}  // namespace

Holdings holdings_of(const Structure &structure) {
    const nb::error_scope pending;  // a spec may be released while an exception is on its way
    try {
        return find_holdings(structure);
    } catch (const std::bad_alloc &) {
    } catch (nb::python_error &) {
    }
    return {};
}

void KeptStructure::put(Spec &from, Holdings &&holdings) {
    if (!is_empty() || !holdings.may_be_kept || total_bytes_ + holdings.num_bytes > kMostBytes) return;
    std::vector<nb::object> left_out;  // released last
    const size_t num_bytes = holdings.num_bytes + leave_out(from, holdings.answers, left_out);
    if (!let_go(from.structure(), holdings.classes)) return;
    if (total_bytes_ + num_bytes + from.bytes_of_paths() > kMostBytes) from.forget_paths();
    num_bytes_ = num_bytes + from.bytes_of_paths();
    total_bytes_ += num_bytes_;
    spec_.swap(from);
    holdings_ = std::move(holdings);
}

Holdings KeptStructure::take(Spec &to) {
    for (size_t i = 0; i < holdings_.classes.size(); ++i) {
        const Holdings::Class &item = holdings_.classes[i];
        nb::object type = referent_of(item.weakref);
        if (type.is_valid()) {
            spec_.set_ref(item.ref, type.release().ptr());
            continue;
        }
        while (i-- > 0) decref(spec_.structure().all_refs()[holdings_.classes[i].ref]);
        give_up();
        return {};
    }
    total_bytes_ -= std::exchange(num_bytes_, 0);
    to.swap(spec_);
    return std::exchange(holdings_, {});
}

Spec KeptStructure::give_up() {
    total_bytes_ -= std::exchange(num_bytes_, 0);
    for (const Holdings::Class &item : holdings_.classes) spec_.set_ref(item.ref, incref(Py_None));
    holdings_ = {};
    Spec spec;
    spec.swap(spec_);
    return spec;
}

}  // namespace pydag
