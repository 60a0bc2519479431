// SPDX-License-Identifier: Apache-2.0
#include "spec/cache.h"

#include "base/identity_table.h"
#include "base/own_of_thread.h"
#include "base/weak_reference.h"
#include "structure/node_refs.h"
#include "types/keys.h"
#include "types/namespace.h"
#include "types/registration.h"

#include <new>
#include <utility>

namespace pydag {
namespace {

constexpr size_t kSize = 64;

// A number that mostly differs between structures, made of the size and the first key.
uint64_t mark_of(const Structure &structure) {
    uint64_t mark = structure.num_nodes + (uint64_t{structure.num_refs} << 32);
    for (PyObject *const ref : structure.all_refs())
        if (KeysBox::check(ref) && KeysBox::of(ref).size() > 0)
            return mark ^ hash_address(KeysBox::of(ref).inserted_key(0));
    return mark;
}

// A PyDagSpec that somebody else owns.
class LivingSpec {
public:
#ifdef Py_GIL_DISABLED
    // Another thread may destroy it.
    bool is(const Spec &spec) const { return address_ == &spec; }
    explicit operator bool() const { return address_ != nullptr; }
    void set(nb::handle spec) {
        weakref_ = checked(PyWeakref_NewRef(spec.ptr(), nullptr));
        address_ = nb::inst_ptr<Spec>(spec);
    }
    void reset() {
        address_ = nullptr;
        weakref_.reset();
    }
    // Null where it is being destroyed, or gone.
    nb::object owned() const { return referent_of(weakref_); }

private:
    const Spec *address_ = nullptr;  // only compared
    nb::object weakref_;
#else
    // It takes itself out when it is destroyed, and can't be emptied before.
    bool is(const Spec &spec) const { return object_ && nb::inst_ptr<Spec>(nb::handle(object_)) == &spec; }
    explicit operator bool() const { return object_ != nullptr; }
    void set(nb::handle spec) { object_ = spec.ptr(); }
    void reset() { object_ = nullptr; }
    nb::object owned() const { return owned_if_alive(object_); }

private:
    PyObject *object_ = nullptr;
#endif
};

struct Entry {
    Setting setting;
    LivingSpec living;
    KeptStructure kept;
    Holdings living_holdings;  // of a living spec whose structure was kept before
    uint64_t last_mark = 0;    // of the structure that came last

    // Notes this structure as the last one. Returns whether it, or one like it, also came last time. Only then it
    // is kept: most structures that come once never come again, and keeping them would cost time and memory.
    bool note_and_compare(const Structure &structure) {
        const uint64_t mark = mark_of(structure);
        return std::exchange(last_mark, mark) == mark;
    }

    // Empties the entry. Releasing what it held may run code that calls this function again.
    void reset() {
        if (!living && kept.is_empty()) return;
        const Spec dropped = kept.give_up();
        living.reset();
        living_holdings = {};
    }
};
struct Cache {
    Entry entries[kSize];
    uint64_t generation = 0;  // how often it has been emptied
};
Cache &own() { return OwnOfThread<Cache>::get(); }
Entry *entries() { return own().entries; }

// A hash of a few objects: of their classes, and the numbers of their items.
class RootHash {
public:
    void add(PyObject *object) {
        size_t size = 0;
        if (!object) return;
        if (PyTuple_Check(object) || PyList_Check(object)) size = static_cast<size_t>(Py_SIZE(object));
        if (PyDict_Check(object)) size = static_cast<size_t>(PyDict_GET_SIZE(object));
        hash_ = (hash_ ^ (hash_address(Py_TYPE(object)) + size)) * 0xC2B2AE3D27D4EB4Fu;
    }
    // The first items of a tuple; returns the very first, or null.
    PyObject *add_items(PyObject *object) {
        constexpr Py_ssize_t kMost = 6;
        if (!object || !PyTuple_CheckExact(object)) return nullptr;
        for (Py_ssize_t i = 0; i < std::min(kMost, PyTuple_GET_SIZE(object)); ++i) add(PyTuple_GET_ITEM(object, i));
        return PyTuple_GET_SIZE(object) > 0 ? PyTuple_GET_ITEM(object, 0) : nullptr;
    }
    uint64_t value() const { return hash_ >> 32; }

private:
    uint64_t hash_ = 0;
};

// Depends on the class and size of the root; and of a tuple's items, since the arguments of a call are a tuple
// in a tuple.
size_t slot_of(PyObject *root, const Setting &setting) {
    RootHash hash;
    hash.add(root);
    hash.add_items(hash.add_items(root));
    return (hash.value() ^ setting.space * 31 ^ setting.none_is_leaf) % kSize;
}

// Whether `flatten_known` could follow the structure to its end, and would find what the other walks
// find. Keys of other classes could be sorted in another order the next time.
bool can_be_followed(const Structure &structure) {
    PyObject *const *refs = structure.refs;
    for (uint32_t i = 0; i < structure.num_nodes; ++i) {
        const Kind kind = structure.nodes[i].kind;
        if (is_callback(kind) && !node_registration(refs).stand_in) return false;
        refs += num_refs(kind);
    }
    for (PyObject *const ref : structure.all_refs()) {
        if (KeysBox::check(ref) && !KeysBox::of(ref).has_constant_hashes) return false;
    }
    return true;
}

}  // namespace

CachedStructure::CachedStructure(PyObject *root, const Setting &setting)
    : slot_(slot_of(root, setting)), generation_(own().generation), setting_(setting) {
    Entry &entry = entries()[slot_];
    if (entry.setting != setting) return;
    if (entry.living) living_ = entry.living.owned();
    else holdings_ = entry.kept.take(structure_);
}

CachedStructure::~CachedStructure() {
    Entry &entry = entries()[slot_];
    if (!may_put_back_ || !is_current() || structure_.is_empty() || entry.living || !entry.kept.is_empty()) return;
    entry.setting = setting_;
    try {
        entry.kept.put(structure_, std::move(holdings_));
    } catch (const std::bad_alloc &) {  // then it isn't kept
    }
}

const Structure &CachedStructure::structure() const {
    return living_.is_valid() ? nb::inst_ptr<Spec>(living_)->structure_or_empty() : structure_.structure_or_empty();
}

nb::object CachedStructure::paths() {
    return living_.is_valid() ? nb::inst_ptr<Spec>(living_)->keep_paths() : structure_.keep_paths();
}

bool CachedStructure::is_current() const { return generation_ == own().generation; }

void CachedStructure::register_spec(nb::handle object) {
    Entry &entry = entries()[slot_];
    if (is_current()) entry.reset();  // may run code that empties the cache
    if (!is_current()) return;
    entry.setting = setting_;
    entry.living.set(object);
    entry.living_holdings = std::move(holdings_);
    nb::inst_ptr<Spec>(object)->set_slot(static_cast<int>(slot_), entries());
}

nb::object CachedStructure::take_spec() {
    if (living_.is_valid()) return living_;
    nb::object spec = make_spec(std::move(structure_));
    register_spec(spec);
    return spec;
}

nb::object CachedStructure::take_spec(StructureBuilder &&builder) {
    nb::object spec = make_spec(Spec(std::move(builder)));
    holdings_ = {};
    if (can_be_followed(nb::inst_ptr<Spec>(spec)->structure())) register_spec(spec);
    return spec;
}

void CachedStructure::keep(StructureBuilder &&builder) {
    living_.reset();
    Spec(std::move(builder)).swap(structure_);
    holdings_ = {};
    Entry &entry = entries()[slot_];
    may_put_back_ = entry.note_and_compare(structure_.structure()) && can_be_followed(structure_.structure());
    if (may_put_back_) holdings_ = holdings_of(structure_.structure());
    may_put_back_ = holdings_.may_be_kept;
    if (may_put_back_) entry.reset();
}

void Spec::leave_cache() {
    if (slot_ < 0) return;
    const int slot = std::exchange(slot_, -1);
    if (kFreeThreaded && cache_ != entries()) return;
    Entry &entry = entries()[slot];
    if (!entry.living.is(*this)) return;
    entry.living.reset();
    Holdings holdings = std::exchange(entry.living_holdings, {});
    try {
        if (is_empty() || !entry.note_and_compare(structure_)) return;
        if (!holdings.may_be_kept) holdings = holdings_of(structure_);
        entry.kept.put(*this, std::move(holdings));
    } catch (const std::bad_alloc &) {  // then it isn't kept
    }
}

// Releasing a structure may run code that begins a walk. That walk may take a structure that is still there,
// but must not put it back afterwards: the second increment sees to that.
void forget_specs() {
    ++own().generation;
    for (size_t i = 0; i < kSize; ++i) entries()[i].reset();
    ++own().generation;
}

uint64_t cache_generation() { return kFreeThreaded ? types_generation() : own().generation; }

}  // namespace pydag
