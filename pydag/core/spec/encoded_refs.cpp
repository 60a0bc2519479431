// SPDX-License-Identifier: Apache-2.0
#include "spec/encoded_refs.h"

#include "base/constants.h"
#include "base/identity_table.h"
#include "base/interrupt.h"
#include "types/classes.h"
#include "types/key_table.h"
#include "types/registry.h"

#include <algorithm>

namespace pydag {
namespace {

nb::object encode_keys(const Keys &keys) {
    nb::object ranks = nb::none();
    if (!keys.in_order) {
        ranks = checked(PyTuple_New(keys.size()));
        for (uint32_t i = 0; i < keys.size(); ++i)
            PyTuple_SET_ITEM(ranks.ptr(), i, checked(PyLong_FromUnsignedLong(keys.rank(i))).release().ptr());
    }
    return checked(PyTuple_Pack(2, keys.tuple().ptr(), ranks.ptr()));
}

nb::object encode_ref(PyObject *ref) {
    if (KeysBox::check(ref)) return encode_keys(KeysBox::of(ref));
    if (!RegistrationBox::check(ref)) return nb::borrow(ref);
    const Registration &registration = RegistrationBox::of(ref);
    return checked(PyTuple_Pack(2, registration.type.ptr(), registration.namespace_.ptr()));
}

// Whether these Keys have the order that was written. They have the keys that were.
bool have_ranks(const Keys &keys, nb::handle ranks) {
    bool agrees = ranks.is_none() == keys.in_order;
    for (uint32_t i = 0; agrees && !keys.in_order && i < keys.size(); ++i) {
        PyObject *const given = PyTuple_GET_ITEM(ranks.ptr(), i);
        agrees = PyLong_CheckExact(given) && PyLong_AsSize_t(given) == keys.rank(i);
    }
    PyErr_Clear();
    return agrees;
}

// The Keys that `keys_of` makes for a mapping with these strings, so that equal specs have the same Keys object, also
// after pickling. Null if they have another order than was written, or if they are not remembered and `makes_new` is
// false.
nb::object usual_keys(nb::handle inserted, nb::handle ranks, Role role, bool makes_new) {
    PyObject *const *const names = &PyTuple_GET_ITEM(inserted.ptr(), 0);
    const auto count = static_cast<size_t>(PyTuple_GET_SIZE(inserted.ptr()));
    // The names of attributes are sorted, those of slots not; nor were those that an earlier version wrote.
    for (const bool sorted : {true, false}) {
        if (role == (sorted ? Role::kKeys : Role::kSortedKeys)) continue;
        const size_t num_sorted = num_sorted_if(sorted, count);
        nb::object box = nb::borrow(find_equal_keys(names, count, num_sorted));
        if (!box.is_valid() && !makes_new) break;
        if (!box.is_valid()) box = keys_of(names, count, num_sorted);
        if (have_ranks(KeysBox::of(box), ranks)) return box;
    }
    return nb::object();
}

nb::object decode_keys(nb::handle state, Role role) {
    require(is_tuple(state) && PyTuple_GET_SIZE(state.ptr()) == 2, "keys must be a pair");
    const nb::handle inserted(PyTuple_GET_ITEM(state.ptr(), 0)), ranks(PyTuple_GET_ITEM(state.ptr(), 1));
    require(is_tuple(inserted), "keys must be a tuple");
    const size_t count = static_cast<size_t>(PyTuple_GET_SIZE(inserted.ptr()));
    require(ranks.is_none() || (is_tuple(ranks) && static_cast<size_t>(PyTuple_GET_SIZE(ranks.ptr())) == count),
            "there must be one rank for each key");
    PyObject *const *const names = &PyTuple_GET_ITEM(inserted.ptr(), 0);
    const bool are_strings = std::all_of(names, names + count, is_exact_str);
    // Those that are remembered are known to be distinct.
    if (are_strings)
        if (nb::object known = usual_keys(inserted, ranks, role, false); known.is_valid()) return known;
    const nb::object distinct = checked(PySet_New(inserted.ptr()));  // TypeError for an unhashable key
    require(static_cast<size_t>(PySet_GET_SIZE(distinct.ptr())) == count, "keys must be distinct");
    if (are_strings)
        if (nb::object usual = usual_keys(inserted, ranks, role, true); usual.is_valid()) return usual;
    nb::object box = new_keys(names, count);
    Keys &keys = KeysBox::of(box);
    if (!ranks.is_none()) {
        uint32_t *const memory = keys.rank_memory();
        std::fill_n(memory + count, count, UINT32_MAX);
        bool ascends = true;
        for (size_t i = 0; i < count; ++i) {
            PyObject *const given = PyTuple_GET_ITEM(ranks.ptr(), static_cast<Py_ssize_t>(i));
            const size_t rank = PyLong_CheckExact(given) ? PyLong_AsSize_t(given) : count;
            PyErr_Clear();
            require(rank < count && memory[count + rank] == UINT32_MAX, "the ranks of keys must be a permutation");
            memory[i] = static_cast<uint32_t>(rank);
            memory[count + rank] = static_cast<uint32_t>(i);
            ascends = ascends && rank == i;
        }
        require(!ascends, "keys that are in order need no ranks");
        keys.in_order = false;
    }
    return box;
}

nb::object decode_registration(nb::handle state, Kind kind) {
    require(is_tuple(state) && PyTuple_GET_SIZE(state.ptr()) == 2, "a registration must be a pair");
    const nb::handle type(PyTuple_GET_ITEM(state.ptr(), 0)), namespace_(PyTuple_GET_ITEM(state.ptr(), 1));
    require(PyType_Check(type.ptr()) && PyUnicode_CheckExact(namespace_.ptr()),
            "a registration must be a class and a namespace");
    const NamespaceRef space = Namespace::get(namespace_);
    const TypeInfo info = space->find(reinterpret_cast<PyTypeObject *>(type.ptr()));
    // A class that is opened by its fields may have instances that a function opens.
    const bool fits =
        info.registration &&
        (info.kind == kind || (is_callback(kind) && !RegistrationBox::of(info.registration).flatten.is_none()));
    if (!fits)
        fail(PyExc_RuntimeError,
             "Unknown custom type in pickled PyDagSpec: %R in namespace %R.\n"
             "  Register it before the spec is restored.",
             type.ptr(), namespace_.ptr());
    return nb::borrow(info.registration);
}

// Whether the instances of the class are such tuples. What walks know of the class is asked first.
bool is_tuple_class(PyTypeObject *type, Kind kind) {
    const TypeInfo *const known = Namespace::get(constants.empty_text)->find_known(type);
    return (known && !known->registration && known->kind == kind) || kind_of_tuple_class(type) == kind;
}

// The number of fields of a namedtuple class or of a struct sequence class.
nb::object decode_tuple_class(nb::handle cls, Kind kind) {
    // Building an instance of any other class would run code of that class.
    if (!PyType_Check(cls.ptr()) || !is_tuple_class(reinterpret_cast<PyTypeObject *>(cls.ptr()), kind))
        throw Malformed("the type must be a " + std::string(traits(kind).name) + " class");
    return checked(PyLong_FromSsize_t(checked(PyObject_Size(names_of_tuple_class(cls).ptr()))));
}

}  // namespace

WrittenRefs::WrittenRefs(const Structure &structure) {
    RefBuffer<48> written;
    IdentityTable seen;
    for (PyObject *const ref : structure.all_refs()) {
        interruptible_step();
        const auto next = static_cast<uint32_t>(written.size());
        const uint32_t known = seen.find_or_add(ref, next);
        indices.push(known == IdentityTable::kNew ? next : known);
        if (known == IdentityTable::kNew) written.push_new(encode_ref(ref));
    }
    refs = written.take_tuple();
}

EncodedRefs::EncodedRefs(nb::handle refs) : refs_(refs), decoded_(static_cast<size_t>(PyTuple_GET_SIZE(refs.ptr()))) {}

void EncodedRefs::decode(Node node, const size_t *indices, Refs &refs) {
    nb::object registration;  // comes before what depends on it
    for (uint32_t i = 0; i < num_refs(node); ++i) {
        const Role role = traits(node.kind).roles[i];
        nb::object ref = decode_ref(node, role, indices[i], registration);
        if (role == Role::kRegistration) registration = ref;
        refs.push_new(std::move(ref));
    }
}

nb::object EncodedRefs::decoded(size_t index, Use use) {
    if (decoded_[index].use != use) {
        const nb::handle state(PyTuple_GET_ITEM(refs_.ptr(), static_cast<Py_ssize_t>(index)));
        nb::object object = in_field("refs", index, [&] {
            if (use.role == Role::kRegistration) return decode_registration(state, use.kind);
            return use.role == Role::kClass ? decode_tuple_class(state, use.kind) : decode_keys(state, use.role);
        });
        decoded_[index] = {use, std::move(object)};
    }
    return decoded_[index].object;
}

nb::object EncodedRefs::decode_names(Node node, size_t index, nb::handle registration) {
    nb::object keys = decoded(index, {Role::kNames});
    require(KeysBox::of(keys).size() == node.count, "a registered class must have one child for each field");
    for (uint32_t child = 0; child < node.count; ++child)
        require(PyUnicode_Check(KeysBox::of(keys).key(child)), "names of fields must be strings");
    const nb::object data = RegistrationBox::of(registration).data;
    if (data.is_none()) return keys;
    require(equal_keys(data, keys), "the class has other fields now");
    return data;
}

nb::object EncodedRefs::decode_ref(Node node, Role role, size_t index, nb::handle registration) {
    const nb::handle ref(PyTuple_GET_ITEM(refs_.ptr(), static_cast<Py_ssize_t>(index)));
    const auto has_items = [&](size_t count) {
        return is_tuple(ref) && static_cast<size_t>(PyTuple_GET_SIZE(ref.ptr())) == count;
    };
    switch (role) {
        case Role::kRegistration:
            return decoded(index, {role, node.kind});
        case Role::kNames:
            return decode_names(node, index, registration);
        case Role::kSortedKeys:
        case Role::kKeys: {
            nb::object keys = decoded(index, {role});
            require(KeysBox::of(keys).size() == node.count, "a mapping must have one child for each key");
            return keys;
        }
        case Role::kClass:
            require(PyLong_AsSize_t(decoded(index, {role, node.kind}).ptr()) == node.count,
                    "a tuple class must have one child for each field");
            break;
        case Role::kFactory:
            require(ref.is_none() || PyCallable_Check(ref.ptr()), "a default factory must be callable");
            break;
        case Role::kMaxlen: {
            const Py_ssize_t maxlen = PyLong_CheckExact(ref.ptr()) ? PyLong_AsSsize_t(ref.ptr()) : -1;
            PyErr_Clear();
            require(ref.is_none() || (maxlen >= 0 && static_cast<size_t>(maxlen) >= node.count),
                    "maxlen of a deque must be None or at least its length");
            break;
        }
        case Role::kEntries:
            require(ref.is_none() || has_items(node.count), "entries must be None or one for each child");
            break;
        case Role::kMeta:
            require(has_items(RegistrationBox::of(registration).meta_access.size()),
                    "there must be one value for each meta field");
            break;
        default:
            break;
    }
    return nb::borrow(ref);
}

}  // namespace pydag
