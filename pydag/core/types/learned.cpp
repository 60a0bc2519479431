// SPDX-License-Identifier: Apache-2.0
#include "types/learned.h"

#include <memory>
#include <unordered_map>

namespace pydag {
namespace {

// Whether an attribute of this type lets an assignment pass, now and later: a class that can be
// changed may be given a `__set__`, and an instance of it another class.
bool lets_pass(PyTypeObject *type) {
    const bool is_fixed = !is_heap_type(type) || PyType_HasFeature(type, Py_TPFLAGS_IMMUTABLETYPE);
    return is_fixed && !type->tp_descr_set && !PyType_IsSubtype(type, &PyModule_Type);
}

}  // namespace

bool TakenNames::is_listed(PyObject *name) const {
    if (version_ == 0) return true;
    for (const nb::object &taken : names_)
        if (taken.is(name)) return true;
    return false;
}

void TakenNames::search(PyTypeObject *type) {
    version_ = 0;
    mask_ = ~uint64_t{0};
    names_.clear();
    const unsigned version = assign_version(type);
    if (version == 0) return;
    uint64_t mask = 0;
    const nb::object bases = mro_of(type);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(bases.ptr()); ++i) {
        const nb::object attributes = dict_of_class(reinterpret_cast<PyTypeObject *>(PyTuple_GET_ITEM(bases.ptr(), i)));
        const Locked locked(attributes.ptr());
        Py_ssize_t position = 0;
        for (PyObject *key, *value; PyDict_Next(attributes.ptr(), &position, &key, &value);) {
            if (!is_exact_str(key)) return;  // its own `__eq__` decides which names are equal to it
            if (lets_pass(Py_TYPE(value))) continue;
            names_.push_back(interned(key));
            mask |= bit(names_.back().ptr());
        }
    }
    version_ = version;
    mask_ = mask;
}

#ifdef Py_GIL_DISABLED

namespace {

// Of one thread, by the number of the registration.
struct LearnedInThread {
    static constexpr size_t kMost = 4096;
    static constexpr size_t kRecent = 64;
    struct Recent {
        uint64_t number = 0;
        Learned *learned = nullptr;
    };
    std::unordered_map<uint64_t, std::unique_ptr<Learned>> all;
    Recent recent[kRecent];
    uint32_t num_users = 0;
};
LearnedInThread &own() { return OwnOfThread<LearnedInThread>::get(); }

}  // namespace

uint64_t LearnedByWalks::next_number() {
    static std::atomic<uint64_t> last = 0;
    return ++last;
}

// What was learned of registrations that are gone is left behind, so from time to time all is forgotten. Nothing is
// released but strings.
Learned &LearnedByWalks::get() {
    LearnedInThread &data = own();
    LearnedInThread::Recent &recent = data.recent[number_ % LearnedInThread::kRecent];
    if (recent.number == number_) [[likely]]
        return *recent.learned;
    if (data.all.size() >= LearnedInThread::kMost && data.num_users == 0) {
        data.all.clear();
        std::fill(std::begin(data.recent), std::end(data.recent), LearnedInThread::Recent());
    }
    auto &known = data.all[number_];
    if (!known) known = std::make_unique<Learned>(Learned{first_order_, {}});
    recent = {number_, known.get()};
    return *known;
}

LearnedUse::LearnedUse() { ++own().num_users; }
LearnedUse::~LearnedUse() { --own().num_users; }

#endif

}  // namespace pydag
