// SPDX-License-Identifier: Apache-2.0
#include "base/constants.h"
#include "base/threads.h"
#include "types/fields.h"
#include "types/key_table.h"

#include <set>

namespace pydag {
namespace {

std::vector<FieldAccess> access_to(nb::handle type, nb::handle names) {
    std::vector<FieldAccess> fields;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names.ptr()); ++i) {
        nb::object name = interned(PyTuple_GET_ITEM(names.ptr(), i));
        const Py_ssize_t offset = slot_offset(reinterpret_cast<PyTypeObject *>(type.ptr()), name.ptr());
        fields.push_back({std::move(name), offset});
    }
    return fields;
}

void add_dict_fields(const std::vector<FieldAccess> &fields, bool is_meta, std::vector<DictField> &added) {
    for (size_t i = 0; i < fields.size(); ++i)
        if (fields[i].offset == 0) added.push_back({fields[i].name.ptr(), static_cast<uint32_t>(i), is_meta});
}

bool has_distinct_slots(const Registration &registration) {
    std::set<Py_ssize_t> offsets;
    for (const auto *fields : {&registration.data_access, &registration.slot_access, &registration.meta_access})
        for (const FieldAccess &field : *fields)
            if (field.offset && !offsets.insert(field.offset).second) return false;
    return true;
}

// All that `resolve_fields` fills. Nothing that was there before is released.
struct Resolved {
    nb::object data, meta_names;
    std::vector<FieldAccess> data_access, slot_access, meta_access, cached_access;
};

Resolved ask_for_fields(const Registration &registration, nb::handle resolve) {
    const nb::object answer = call(resolve);
    nb::object data(answer[0]), slots(answer[1]), meta(answer[2]), cached = nb::borrow(constants.no_items);
    if (nb::len(answer) > 3) cached = answer[3];  // where another library opens instances, nothing is cached
    Resolved fields;
    fields.slot_access = access_to(registration.type, slots);
    std::erase_if(fields.slot_access, [](const FieldAccess &slot) { return slot.offset == 0; });
    fields.meta_access = access_to(registration.type, meta);
    fields.cached_access = access_to(registration.type, cached);
    if (!data.is_none()) {
        fields.data_access = access_to(registration.type, data);
        data = keys_of(&PyTuple_GET_ITEM(data.ptr(), 0), fields.data_access.size(), 0);
    }
    fields.meta_names = std::move(meta);
    fields.data = std::move(data);
    return fields;
}

nb::object unresolved(const Registration &registration) {
    const Guard guard(registry_mutex);
    return registration.resolve_fields;
}

}  // namespace

void resolve_fields(Registration &registration) {
    nb::object resolve = unresolved(registration), done = nb::none();
    if (resolve.is_none()) return;
    Resolved fields = ask_for_fields(registration, resolve);
    std::vector<DictField> order;
    const Guard guard(registry_mutex);
    // The call may have run code that used the class, and so resolved its fields already; or another thread has done
    // so. Then those stand, since there may be specs that were made with them.
    if (registration.resolve_fields.is_none()) return;
    registration.slot_access = std::move(fields.slot_access);
    registration.meta_access = std::move(fields.meta_access);
    registration.data_access = std::move(fields.data_access);
    registration.cached_access = std::move(fields.cached_access);
    std::swap(registration.meta_names, fields.meta_names);
    std::swap(registration.data, fields.data);
    registration.has_distinct_slots = has_distinct_slots(registration);
    if (!registration.data.is_none()) {
        add_dict_fields(registration.data_access, false, order);
        add_dict_fields(registration.meta_access, true, order);
        // Then a new instance needs no look at what a slot had before.
        registration.has_only_slots = order.empty() && registration.has_distinct_slots;
    }
    registration.learned.begin_with(std::move(order));
    std::swap(registration.resolve_fields, done);
}

}  // namespace pydag
