// SPDX-License-Identifier: Apache-2.0
//
// What walks learn of the instances of a registered class, to read and write the next one faster.
//
// Where threads run at the same time, each learns for itself.
#pragma once

#include "base/threads.h"

#include <vector>

namespace pydag {

// A field that is found in the `__dict__` of instances.
struct DictField {
    PyObject *name;  // an exact string, borrowed
    uint32_t index;  // among the data fields or the meta fields; with a stand-in, among all parts of the instance
    bool is_meta;    // a part of aux_data, no child
};

// Calls `take(field, value)` for each of the fields. They are sorted into the order in which this dict has them: mostly
// the next dict has them in the same order. Other keys may stand between them. False where a field is missing. Runs no
// Python code.
template <class Take>
bool read_in_order(PyObject *dict, std::vector<DictField> &fields, Take take) {
    Py_ssize_t position = 0;
    PyObject *key, *value;
    for (auto next = fields.begin(); next != fields.end();) {
        if (!PyDict_Next(dict, &position, &key, &value)) return false;
        if (key != next->name) [[unlikely]] {
            const auto is_key = [=](const DictField &field) {
                return is_exact_str(key) && is_same_name(field.name, key);
            };
            const auto found = std::find_if(next, fields.end(), is_key);
            if (found == fields.end()) continue;
            std::iter_swap(next, found);
        }
        take(*next++, value);
    }
    return true;
}

// The attributes of a class that may take an assignment to an instance: properties, slots and other data descriptors,
// `__class__` and `__dict__` among them. `object.__setattr__` is the fastest way to write into a `__dict__`, but it
// would give the value to such an attribute instead.
//
// A class may change at any time. Its version shows that, so it is searched again only after a change.
class TakenNames {
public:
    // Brings the names of the class up to date. To be called before `may_have`, whose answers are valid until
    // Python code runs.
    void update(PyTypeObject *type) {
        if (version_ == 0 || version_ != version_of(type)) [[unlikely]]
            search(type);
    }
    // Whether `PyObject_GenericSetAttr` might not put the attribute into `__dict__`. Runs no Python code.
    bool may_have(PyObject *name) const {
        return !is_exact_str(name) || !PyUnicode_CHECK_INTERNED(name) || may_have_interned(name);
    }
    bool may_have_interned(PyObject *name) const { return (mask_ & bit(name)) && is_listed(name); }

private:
    static uint64_t bit(PyObject *name) { return uint64_t{1} << (hash_address(name) >> 58); }
    bool is_listed(PyObject *name) const;
    void search(PyTypeObject *type);

    unsigned version_ = 0;           // of the class when it was searched; 0: never
    uint64_t mask_ = 0;              // of the names' addresses: it rules out most other names
    std::vector<nb::object> names_;  // interned
};

struct Learned {
    // The named fields that aren't slots, in the order in which the last instance had them.
    std::vector<DictField> dict_order;
    TakenNames taken_names;
};

#ifdef Py_GIL_DISABLED

class LearnedByWalks {
public:
    // What this thread has learned. To be asked for again after Python code ran, unless a LearnedUse lives.
    Learned &get();
    // Where each thread begins. Only before anybody has the registration.
    void begin_with(std::vector<DictField> dict_order) { first_order_ = std::move(dict_order); }

private:
    static uint64_t next_number();
    const uint64_t number_ = next_number();  // no two registrations have ever had the same one
    std::vector<DictField> first_order_;
};

// While one lives, nothing that its thread has learned is forgotten.
class LearnedUse {
public:
    LearnedUse();
    ~LearnedUse();
    LearnedUse(const LearnedUse &) = delete;
    LearnedUse &operator=(const LearnedUse &) = delete;
};

#else

class LearnedByWalks {
public:
    Learned &get() { return learned_; }
    void begin_with(std::vector<DictField> dict_order) { learned_.dict_order = std::move(dict_order); }

private:
    Learned learned_;
};

struct LearnedUse {
    LearnedUse() {}
    ~LearnedUse() {}
};

#endif

}  // namespace pydag
