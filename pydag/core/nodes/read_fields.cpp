// SPDX-License-Identifier: Apache-2.0
//
// Looks into instances of `register_fields` classes, without running Python code: attributes are
// read by walking through the instance's dict, since looking one up could compare it with a hostile
// key.
#include "base/tuples.h"
#include "nodes/nodes.h"
#include "nodes/open.h"
#include "structure/node_refs.h"
#include "types/fields.h"
#include "types/key_table.h"

#include <algorithm>

namespace pydag::detail {
namespace {

// The index of the field of this name; the number of fields if there is none.
size_t find_name(const std::vector<FieldAccess> &fields, PyObject *name) {
    size_t i = 0;
    while (i < fields.size() && !is_same_name(fields[i].name.ptr(), name)) ++i;
    return i;
}

// Whether a dict has all fields, and nothing else but what was computed from them and cached.
bool has_just_fields(const Registration &registration, const std::vector<DictField> &fields, PyObject *dict) {
    const auto &cached = registration.cached_access;
    const auto size = static_cast<size_t>(PyDict_GET_SIZE(dict));
    if (size < fields.size() || size > fields.size() + cached.size()) return false;
    size_t num_met = 0;
    Py_ssize_t position = 0;
    // No two exact strings in a dict are equal: so each field has a key of its own.
    for (PyObject *key, *value; PyDict_Next(dict, &position, &key, &value);) {
        const auto is_it = [=](const DictField &field) { return is_same_name(field.name, key); };
        if (!is_exact_str(key)) return false;
        if (std::any_of(fields.begin(), fields.end(), is_it)) ++num_met;
        else if (find_name(cached, key) == cached.size()) return false;
    }
    return num_met == fields.size();
}

bool read_dict_fields(const Registration &registration, std::vector<DictField> &order, PyObject *dict,
                      PyObject **values, PyObject **meta, HeldBy held) {
    const Locked locked(dict);
    if (registration.must_have_just_fields() && PyDict_GET_SIZE(dict) != static_cast<Py_ssize_t>(order.size()) &&
        !has_just_fields(registration, order, dict))
        return false;
    return read_in_order(dict, order, [&](const DictField &field, PyObject *value) {
        (field.is_meta ? meta : values)[field.index] = value;
        held.keep(value);
    });
}

bool read_slots(PyObject *object, const std::vector<FieldAccess> &fields, PyObject **values, HeldBy held) {
    for (const FieldAccess &field : fields) {
        if (field.offset && !(*values = read_slot(object, field.offset))) return false;
        if (field.offset) held.keep(*values);
        ++values;
    }
    return true;
}

// Attributes can be reached in other ways if their dict is somebody else's, too, if a slot goes by two names,
// and if the instance is opened wherever it stands. `dict`: the instance's, or null.
bool owns_attributes(const Registration &registration, PyObject *dict) {
    const bool owns_dict = !dict || has_references(dict, 2);  // the caller's is the second one
    return owns_dict && registration.has_distinct_slots && registration.has_identity;
}

// The fields that were named, in `__dict__` and in slots.
bool read_named(PyObject *object, const Registration &registration, OpenOptions *options, PyObject **values,
                PyObject **meta, HeldBy held) {
    {
        const Locked locked(object);
        if (!read_slots(object, registration.data_access, values, held) ||
            !read_slots(object, registration.meta_access, meta, held))
            return false;
    }
    nb::object dict;
    auto &order = registration.learned.get().dict_order;
    if (!order.empty() || (registration.must_have_just_fields() && Py_TYPE(object)->tp_dictoffset != 0)) {
        dict = instance_dict(object);
        if (!dict.is_valid() || !read_dict_fields(registration, order, dict.ptr(), values, meta, held)) return false;
    }
    if (options) options->owns_attributes = owns_attributes(registration, dict.ptr());
    return true;
}

// All attributes but the meta fields and what is cached: those in `__dict__`, in the order in which they were set, then
// the `__slots__` members that are set. Calls `add(name, value, is_slot)`, which says whether to go on. False also for
// a name in `__dict__` that is a slot's, set or not: written back it could go to either. And for a meta field's name
// that is no exact string: whether the dict finds it under that name, and whether it has another one of the same text,
// only its own class can tell. What isn't found of the meta fields is null.
template <class Add>
bool read_all(PyObject *object, const Registration &registration, OpenOptions *options, Add add, PyObject **meta,
              HeldBy held) {
    const auto &fields = registration.meta_access, &slots = registration.slot_access;
    for (size_t i = 0; i < fields.size(); ++i) meta[i] = nullptr;  // the keys decide which of them are written
    nb::object dict;
    if (Py_TYPE(object)->tp_dictoffset != 0) {
        dict = instance_dict(object);
        if (!dict.is_valid()) return false;
        const Locked locked(dict.ptr());
        Py_ssize_t position = 0;
        for (PyObject *key, *value; PyDict_Next(dict.ptr(), &position, &key, &value);) {
            const size_t i = find_name(fields, key);
            held.keep(key), held.keep(value);
            if (i == fields.size()) {
                const auto &cached = registration.cached_access;
                if (find_name(cached, key) < cached.size()) continue;
                if (find_name(slots, key) < slots.size() || !add(key, value, false)) return false;
            } else if (key == fields[i].name.ptr() || is_exact_str(key)) {
                meta[i] = value;  // unless a slot, which is read later, hides the key
            } else {
                return false;
            }
        }
    }
    const Locked locked(object);
    for (const FieldAccess &slot : slots)
        if (PyObject *const value = read_slot(object, slot.offset)) {
            held.keep(value);
            if (!add(slot.name.ptr(), value, true)) return false;
        }
    if (options) options->owns_attributes = owns_attributes(registration, dict.ptr());
    return read_slots(object, fields, meta, held);
}

bool has_just_its_fields(PyObject *object, const Registration &registration) {
    const GcPause pause;  // making the dict could start a collection, which runs finalizers
    const nb::object dict = instance_dict(object);
    if (!dict.is_valid()) return false;
    const Locked locked(dict.ptr());
    return has_just_fields(registration, registration.learned.get().dict_order, dict.ptr());
}

}  // namespace

bool read_known_fields(PyObject *object, PyObject *const *refs, OpenOptions *options, PyObject **values, HeldBy held) {
    const FieldsRefs fields{refs};
    const Registration &registration = fields.registration();
    if (reinterpret_cast<PyObject *>(Py_TYPE(object)) != registration.type.ptr()) return false;
    Buffer<PyObject *, 8> meta;
    PyObject **const found = meta.extend(registration.meta_access.size());
    if (fields.keys_box() == registration.data.ptr()) [[likely]] {
        if (!read_named(object, registration, options, values, found, held)) return false;
    } else {
        const Keys &keys = fields.keys();
        uint32_t count = 0;
        const uint32_t *const ranks = keys.ranks();
        const auto add = [&](PyObject *name, PyObject *value, bool) {
            if (count == keys.size() || name != keys.inserted_key(count)) return false;
            values[ranks ? ranks[count] : count] = value;
            ++count;
            return true;
        };
        const bool reads_all = registration.data.is_none() && read_all(object, registration, options, add, found, held);
        if (!reads_all || count != keys.size()) return false;
    }
    PyObject *const *const expected = fields.meta_values();
    for (size_t i = 0; i < meta.size(); ++i)
        if (found[i] != expected[i])
            return false;  // false also for a field that was not found: it is null, and what is expected never is
    return true;
}

PyObject **read_fields(PyObject *object, PyObject *box, OpenOptions &options, Refs &refs, uint32_t &count) {
    const Registration &registration = RegistrationBox::of(box);
    Buffer<PyObject *, 8> meta;
    PyObject **const found = meta.extend(registration.meta_access.size()), **values;
    nb::object keys;
    if (!registration.data.is_none()) {
        keys = registration.data;
        values = options.arena.take(registration.data_access.size());
        if (!read_named(object, registration, &options, values, found, options.held)) return nullptr;
    } else {
        Buffer<PyObject *, 16> names, items;
        size_t num_in_dict = 0;
        const auto add = [&](PyObject *name, PyObject *value, bool is_slot) {
            if (!is_exact_str(name)) return false;
            names.push(name), items.push(value);
            num_in_dict += !is_slot;
            return true;
        };
        if (!read_all(object, registration, &options, add, found, options.held)) return nullptr;
        if (std::find(found, found + meta.size(), nullptr) != found + meta.size()) return nullptr;
        keys = keys_of(names.data(), names.size(), num_in_dict);
        values = options.arena.take(names.size());
        for (uint32_t i = 0; i < items.size(); ++i) values[KeysBox::of(keys).rank(i)] = items[i];
    }
    // Other values may be arrays, or hold some: the walk that may run code finds out.
    if (!registration.is_foreign && !std::all_of(found, found + meta.size(), is_surely_no_array)) return nullptr;
    count = KeysBox::of(keys).size();
    refs.push_borrowed(box);
    refs.push_new(std::move(keys));
    refs.push_new(tuple_of(found, meta.size()));
    return values;
}

}  // namespace pydag::detail

namespace pydag {

TypeInfo as_opened(PyObject *object, TypeInfo info) {
    if (info.kind != Kind::kFields) return info;
    const Registration &registration = RegistrationBox::of(info.registration);
    if (registration.is_strict && !detail::has_just_its_fields(object, registration)) info.kind = Kind::kCustom;
    return info;
}

}  // namespace pydag
