// SPDX-License-Identifier: Apache-2.0
#include "types/registration.h"

#include "base/threads.h"
#include "base/tuples.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace pydag {
namespace {

// By class. Lives as long as the process: destroying it after the interpreter is gone would crash. Nothing is released
// while the mutex is held.
using Table = std::unordered_multimap<PyObject *, nb::object>;
Table &table() {
    static Table *const instance = new Table;
    return *instance;
}

// Where a class is registered; the end of the table where it isn't. The namespaces are exact strings.
Table::iterator find_in_table(nb::handle namespace_, nb::handle type) {
    const auto [first, last] = table().equal_range(type.ptr());
    const auto found = std::find_if(first, last, [=](const auto &entry) {
        return PyUnicode_Compare(RegistrationBox::of(entry.second).namespace_.ptr(), namespace_.ptr()) == 0;
    });
    return found == last ? table().end() : found;
}

}  // namespace

nb::object find_own(nb::handle namespace_, nb::handle type) {
    const Guard guard(registry_mutex);
    const auto found = find_in_table(namespace_, type);
    return found == table().end() ? nb::object() : found->second;
}

bool add_own(nb::handle registration) {
    const Registration &added = RegistrationBox::of(registration);
    const Guard guard(registry_mutex);
    if (find_in_table(added.namespace_, added.type) != table().end()) return false;
    table().emplace(added.type.ptr(), nb::borrow(registration));
    return true;
}

nb::object remove_own(nb::handle namespace_, nb::handle type) {
    const Guard guard(registry_mutex);
    const auto found = find_in_table(namespace_, type);
    if (found == table().end()) return nb::object();
    nb::object removed = std::move(found->second);  // the caller releases it, which may come back here
    table().erase(found);
    return removed;
}

nb::object registered_classes() {
    std::vector<nb::object> boxes;
    {
        const Guard guard(registry_mutex);
        for (const auto &[type, registration] : table()) boxes.push_back(registration);
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
