// SPDX-License-Identifier: Apache-2.0
#include "types/own_registrations.h"

#include "base/tuples.h"

#include <algorithm>
#include <new>
#include <unordered_map>
#include <vector>

namespace pydag {
namespace {

// Lives as long as the process: destroying it after the interpreter is gone would crash.
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
    const auto of_class = table().find(type.ptr());
    if (of_class == table().end()) return nb::object();
    const auto found = find_in(of_class->second, namespace_);
    return found == of_class->second.end() ? nb::object() : *found;
}

void add_own(nb::object registration) {
    PyObject *const type = RegistrationBox::of(registration).type.ptr();
    const auto of_class = table().try_emplace(type).first;
    try {
        of_class->second.push_back(std::move(registration));
    } catch (const std::bad_alloc &) {
        if (of_class->second.empty()) table().erase(of_class);
        throw;
    }
}

void remove_own(nb::handle namespace_, nb::handle type) {
    const auto of_class = table().find(type.ptr());
    const auto found = find_in(of_class->second, namespace_);
    const nb::object owned = *found;  // releasing it may come back here
    of_class->second.erase(found);
    if (of_class->second.empty()) table().erase(of_class);
}

nb::object registered_classes() {
    std::vector<nb::object> pairs;
    for (const auto &[type, registrations] : table())
        for (const nb::object &box : registrations)
            pairs.push_back(tuple_of(nb::object(RegistrationBox::of(box).namespace_), nb::borrow(type)));
    nb::object list = checked(PyList_New(0));
    for (const nb::object &pair : pairs) checked(PyList_Append(list.ptr(), pair.ptr()));
    return list;
}

bool same_registration(nb::handle a, nb::handle b) {
    if (a.is(b)) return true;
    const Registration &x = RegistrationBox::of(a), &y = RegistrationBox::of(b);
    return x.type.is(y.type) && x.flatten.is(y.flatten) && x.unflatten.is(y.unflatten) && !x.is_fields && !y.is_fields;
}

}  // namespace pydag
