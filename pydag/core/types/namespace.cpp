// SPDX-License-Identifier: Apache-2.0
#include "types/namespace.h"

#include "base/constants.h"
#include "base/error.h"
#include "base/threads.h"
#include "types/class_table.h"
#include "types/registry.h"

#include <string>
#include <unordered_map>
#include <vector>

namespace pydag {

struct KnownType {
    nb::object registration = {};  // what `info` borrows
    TypeInfo info = {};
};
// What is remembered of each class that was looked up.
struct TypeTable : ClassTable<KnownType> {
    std::unique_ptr<TypeTable> next;  // of those that wait to be released
};

namespace {

void (*forget_what_was_made)(PyTypeObject *) = nullptr;  // set when the module is made

// How often all has been forgotten, and how many namespaces have been made: by any thread.
std::atomic<uint64_t> epoch = 0, num_made = 1;

struct Spaces {
    std::unordered_map<std::string, std::unique_ptr<Namespace>> spaces;
    Namespace *unnamed = nullptr;
    uint64_t epoch = 0;        // of the whole process, when these were emptied
    uint64_t num_changes = 0;  // of other libraries' registries, likewise
};
Spaces &own() { return OwnOfThread<Spaces>::get(); }

// Takes the namespaces that nobody is using out of the table.
std::vector<std::unique_ptr<Namespace>> take_unused() {
    auto &spaces = own().spaces;
    std::vector<std::unique_ptr<Namespace>> unused;
    unused.reserve(spaces.size());
    for (auto next = spaces.begin(); next != spaces.end();) {
        const auto current = next++;
        if (current->second.get() == own().unnamed || current->second->is_used()) continue;
        unused.push_back(std::move(current->second));
        spaces.erase(current);
    }
    return unused;
}

}  // namespace

std::string namespace_text(nb::handle name) {
    if (!PyUnicode_Check(name.ptr()))
        fail(PyExc_TypeError, "The namespace must be a string, got %U.", short_repr(name).ptr());
    if (!PyUnicode_AsUTF8(name.ptr())) {
        PyErr_Clear();
        fail(PyExc_ValueError,
             "The namespace %U has a lone surrogate, a code point from U+D800 to U+DFFF, which optree can't take\n"
             "  Use a name without one.",
             short_repr(name).ptr());
    }
    return text_of(name);
}

void tell_when_types_are_forgotten(void (*listener)(PyTypeObject *)) { forget_what_was_made = listener; }

Namespace::Namespace(nb::handle name, uint64_t id)
    : name_(checked(PyUnicode_FromObject(name.ptr()))),  // no subclass
      id_(id) {}

Namespace::~Namespace() = default;

NamespaceRef Namespace::get(nb::handle name) {
    constexpr size_t kMost = 64;
    Spaces &state = own();
    if (const uint64_t changes = num_changes_elsewhere(); changes != state.num_changes) [[unlikely]] {
        state.num_changes = changes;
        forget_changes_elsewhere();
    }
    if (kFreeThreaded && state.epoch != types_generation()) [[unlikely]]
        forget_own_types();
    const bool is_unnamed = PyUnicode_Check(name.ptr()) && PyUnicode_GET_LENGTH(name.ptr()) == 0;
    if (is_unnamed && state.unnamed) [[likely]]
        return NamespaceRef(*state.unnamed);
    std::string text = namespace_text(name);
    if (const auto known = state.spaces.find(text); known != state.spaces.end()) return NamespaceRef(*known->second);

    state.spaces.reserve(state.spaces.size() + 1);  // then nothing fails with `made` half handed over
    // That without a name has the same number in all threads, so that what was made in it is known to all.
    std::unique_ptr<Namespace> made(new Namespace(name, is_unnamed ? 1 : ++num_made));
    NamespaceRef result(*made);
    // Released when all is in order again, since that may run Python code.
    std::vector<std::unique_ptr<Namespace>> dropped;
    if (state.spaces.size() >= kMost) dropped = take_unused();
    state.spaces.emplace(std::move(text), std::move(made));
    if (is_unnamed) state.unnamed = result.get();
    if (!dropped.empty()) forget_what_was_made(nullptr);
    return result;
}

// The lookup may run code that gives the object another class, and drops the last reference to this one.
TypeInfo Namespace::look_up_class_of(PyObject *object) {
    for (;;) {
        const nb::object type = class_of(object);
        const TypeInfo info = find(reinterpret_cast<PyTypeObject *>(type.ptr()));
        if (type.is(as_object(Py_TYPE(object)))) return info;
    }
}

TypeInfo Namespace::find_in_table(PyTypeObject *type) {
    if (const TypeInfo *const info = find_known_in_table(type)) return *info;
    // What was looked up counts only if nothing was registered meanwhile.
    for (;;) {
        const uint64_t before = types_generation();
        nb::object weakref = weak_reference_to(type);
        const TypeInfo info = look_up_type(type, name_);
        nb::object registration = nb::steal(info.registration);
        if (before != types_generation()) continue;
        if (const TypeInfo *const known = find_known_in_table(type)) return *known;
        remember(type, std::move(weakref), info, std::move(registration));
        return info;
    }
}

const TypeInfo *Namespace::find_known_in_table(PyTypeObject *type) {
    const TypeTable::Entry *const entry = table_ ? table_->find(type) : nullptr;
    if (!entry) return learn_plain(type);
    recent_[recent_index(type)].set(type, entry->weakref, entry->value.info);
    return &entry->value.info;
}

const TypeInfo *Namespace::learn_plain(PyTypeObject *type) {
    const uint64_t before = types_generation();
    TypeInfo info;
    if (!look_up_plain_type(type, name_, info) || before != types_generation()) return nullptr;
    nb::object weakref = weak_reference_to(type);
    Recent &recent = recent_[recent_index(type)];
    const nb::object kept = weakref;
    remember(type, std::move(weakref), info, nb::object());
    recent.set(type, kept, info);
    return &recent.info;
}

void Namespace::remember(PyTypeObject *type, nb::object weakref, const TypeInfo &info, nb::object registration) {
    if (!table_) table_ = std::make_unique<TypeTable>();
    if (table_->is_full()) {
        forget_recent();  // they may point to what goes
        table_->make_room();
    }
    forget_recent(type);  // another class may have been at this address
    table_->add({type, std::move(weakref), {std::move(registration), info}});
}

void Namespace::forget_recent() {
    for (Recent &recent : recent_) recent.reset();
}

void Namespace::forget_recent(PyTypeObject *type) { recent_[recent_index(type)].reset(); }

bool Namespace::is_dict_insertion_ordered() const { return pydag::is_dict_insertion_ordered(name_, true); }

bool Namespace::is_ordered_itself() const {
    return PyUnicode_GET_LENGTH(name_.ptr()) > 0 && pydag::is_dict_insertion_ordered(name_, false);
}

uint64_t types_generation() { return epoch.load(std::memory_order_acquire); }

void forget_types() {
    epoch.fetch_add(1, std::memory_order_acq_rel);
    forget_own_types();
}

// Objects are released last, when all tables are new: that may run code that calls this function again.
void forget_own_types() {
    std::unique_ptr<TypeTable> released;
    own().epoch = types_generation();
    for (auto &[name, space] : own().spaces) {
        space->forget_recent();
        if (!space->table_) continue;
        space->table_->next = std::move(released);
        released = std::move(space->table_);
    }
    forget_what_was_made(nullptr);
    while (released) released = std::move(released->next);
}

// As above, objects are released last.
void forget_type(PyTypeObject *type) {
    if (kFreeThreaded) return forget_types();
    constexpr size_t kMost = 8;
    TypeTable::Entry released[kMost];
    size_t num_released = 0;
    for (auto &[name, space] : own().spaces) {
        if (!space->table_ || !space->table_->find(type)) continue;
        if (num_released == kMost) return forget_types();
        space->forget_recent(type);
        space->table_->take_out(type, released[num_released++]);
    }
    own().epoch = epoch.fetch_add(1, std::memory_order_acq_rel) + 1;
    forget_what_was_made(type);
}

}  // namespace pydag
