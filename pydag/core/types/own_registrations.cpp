// SPDX-License-Identifier: Apache-2.0
#include "types/own_registrations.h"

#include "base/threads.h"
#include "base/tuples.h"

#include <algorithm>
#include <new>
#include <unordered_map>
#include <vector>

namespace pydag {
namespace {

// Lives as long as the process: destroying it after the interpreter is gone would crash. Nothing is released while the
// mutex is held.
using Table = std::unordered_map<PyObject *, std::vector<nb::object>>;
Table &table() {
    static Table *const instance = new Table;
    return *instance;
}

// Where a class is registered; the end of `registrations` where it isn't. Both are exact strings.
std::vector<nb::object>::iterator find_in(std::vector<nb::object> &registrations, nb::handle namespace_) {
    return std::find_if(registrations.begin(), registrations.end(), [=](const nb::object &box) {
        return PyUnicode_Compare(RegistrationBox::of(box).namespace_.ptr(), namespace_.ptr()) == 0;
    });
}

}  // namespace

nb::object find_own(nb::handle namespace_, nb::handle type) {
    const Guard guard(registry_mutex);
    const auto of_class = table().find(type.ptr());
    if (of_class == table().end()) return nb::object();
    const auto found = find_in(of_class->second, namespace_);
    return found == of_class->second.end() ? nb::object() : *found;
}

bool add_own(nb::handle registration) {
    PyObject *const type = RegistrationBox::of(registration).type.ptr();
    const Guard guard(registry_mutex);
    const auto of_class = table().try_emplace(type).first;
    auto &registrations = of_class->second;
    if (find_in(registrations, RegistrationBox::of(registration).namespace_) != registrations.end()) return false;
    try {
        registrations.push_back(nb::borrow(registration));
    } catch (const std::bad_alloc &) {
        if (registrations.empty()) table().erase(of_class);
        throw;
    }
    return true;
}

nb::object remove_own(nb::handle namespace_, nb::handle type) {
    const Guard guard(registry_mutex);
    const auto of_class = table().find(type.ptr());
    if (of_class == table().end()) return nb::object();
    const auto found = find_in(of_class->second, namespace_);
    if (found == of_class->second.end()) return nb::object();
    nb::object removed = std::move(*found);  // the caller releases it, which may come back here
    of_class->second.erase(found);
    if (of_class->second.empty()) table().erase(of_class);
    return removed;
}

nb::object registered_classes() {
    std::vector<nb::object> boxes;
    {
        const Guard guard(registry_mutex);
        for (const auto &[type, registrations] : table())
            boxes.insert(boxes.end(), registrations.begin(), registrations.end());
    }
    nb::object list = checked(PyList_New(0));
    for (const nb::object &box : boxes) {
        const Registration &registration = RegistrationBox::of(box);
        const nb::object pair = tuple_of(nb::object(registration.namespace_), nb::object(registration.type));
        checked(PyList_Append(list.ptr(), pair.ptr()));
    }
    return list;
}

bool same_registration(nb::handle a, nb::handle b) {
    if (a.is(b)) return true;
    const Registration &x = RegistrationBox::of(a), &y = RegistrationBox::of(b);
    return x.type.is(y.type) && x.flatten.is(y.flatten) && x.unflatten.is(y.unflatten) && !x.is_fields && !y.is_fields;
}

}  // namespace pydag
