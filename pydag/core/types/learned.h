// SPDX-License-Identifier: Apache-2.0
//
// What walks learn of the instances of a registered class, to read and write the next one faster.
//
// Where threads run at the same time, each learns for itself.
#pragma once

#include "base/threads.h"
#include "types/taken_names.h"

namespace pydag {

// A field that is found in the `__dict__` of instances.
struct DictField {
    PyObject *name;  // borrowed from the FieldAccess
    uint32_t index;  // among the data fields or the meta fields
    bool is_meta;
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
