// SPDX-License-Identifier: Apache-2.0
#include "spec/cache.h"

#include "base/identity_table.h"
#include "base/same_key.h"
#include "base/threads.h"
#include "base/weak_reference.h"
#include "spec/root_hash.h"
#include "structure/cursor.h"
#include "structure/node_refs.h"
#include "types/keys.h"
#include "types/namespace.h"
#include "types/registration.h"

#include <new>
#include <utility>

namespace pydag {
namespace {

constexpr size_t kSize = 64;
constexpr size_t kNumPairs = kSize / 2;

// A number that mostly differs between structures: of their size, classes of a few tuples, last keys of a few mappings.
uint64_t mark_of(const Structure &structure) {
    constexpr uint32_t kMost = 5;
    const uint32_t count = structure.num_refs;
    uint64_t mark = structure.num_nodes + (uint64_t{count} << 32);
    for (uint32_t i = 0; i < std::min(count, kMost); ++i) {
        PyObject *const ref = structure.all_refs()[count <= kMost ? i : uint64_t{count - 1} * i / (kMost - 1)];
        if (PyType_Check(ref)) mark = 3 * mark + hash_address(ref);
        if (!KeysBox::check(ref)) continue;
        const Keys &keys = KeysBox::of(ref);
        if (keys.size() > 0) mark = 3 * mark + hash_of_key(keys.inserted_key(keys.size() - 1));
    }
    return mark;
}

bool must_ask_any(const Structure &structure) {
    for (Cursor at(structure); at.is_at_node(); at.step())
        if (must_ask(at.node(), at.refs())) return true;
    return false;
}

// A PyDagSpec that somebody else owns. With the GIL it takes itself out when it is destroyed, and can't be emptied
// before; without, another thread may destroy it.
class LivingSpec {
public:
    bool is(const Spec &spec) const { return address_ == &spec; }
    explicit operator bool() const { return address_ != nullptr; }
    void set(nb::handle spec) {
        if (kFreeThreaded) weakref_ = checked(PyWeakref_NewRef(spec.ptr(), nullptr));
        object_ = spec.ptr();
        address_ = nb::inst_ptr<Spec>(spec);
    }
    void reset() {
        address_ = nullptr;
        weakref_.reset();
    }
    // Null where it is being destroyed, or gone.
    nb::object owned() const { return kFreeThreaded ? referent_of(weakref_) : owned_if_alive(object_); }

private:
    const Spec *address_ = nullptr;
    PyObject *object_ = nullptr;
    nb::object weakref_;
};

struct Entry {
    uint64_t root = 0;  // the hash of the root of what is here
    Setting setting;
    LivingSpec living;
    KeptStructure kept;
    Holdings living_holdings;  // of a living spec whose structure was kept before
    bool must_ask = false;     // of the structure that is here, living or kept
    uint64_t last_mark = 0;    // of the structure that came last

    // Notes this structure as the last one. Returns whether it, or one like it, was the last one before. Only then it
    // is kept: most structures never come again, and keeping them would cost time and memory.
    bool note_and_compare(const Structure &structure) {
        const uint64_t mark = mark_of(structure);
        return std::exchange(last_mark, mark) == mark;
    }

    bool has_nodes_of(PyTypeObject *type) {
        if (!living) return kept.has_nodes_of(type);
        const nb::object spec = living.owned();
        return spec.is_valid() && nb::inst_ptr<Spec>(spec)->has_nodes_of(type);
    }

    // Empties the entry. May run code that calls this function again.
    void reset() {
        if (!living && kept.is_empty()) return;
        const Spec dropped = kept.give_up();
        living.reset();
        living_holdings = {};
    }
};
// In pairs: two roots whose hashes fall on the same pair don't evict each other.
struct Cache {
    Entry entries[kSize];
    bool was_second[kNumPairs] = {};  // which of each pair was used last
    uint64_t generation = 0;          // how often it has been emptied
};
Cache &own() { return OwnOfThread<Cache>::get(); }
Entry *entries() { return own().entries; }

// The entry for such a root.
size_t slot_of(uint64_t root) {
    Cache &cache = own();
    const size_t pair = root % kNumPairs, first = 2 * pair;
    bool is_second = cache.entries[first].root != root;
    if (is_second && cache.entries[first + 1].root != root) return first + !cache.was_second[pair];
    cache.was_second[pair] = is_second;
    return first + is_second;
}

}  // namespace

CachedStructure::CachedStructure(PyObject *root, const Setting &setting)
    : root_(hash_of_root(root) ^ setting.space * 31 ^ setting.none_is_leaf),
      slot_(slot_of(root_)),
      generation_(own().generation),
      setting_(setting) {
    Entry &entry = entries()[slot_];
    if (entry.root != root_ || entry.setting != setting) return;
    must_ask_ = entry.must_ask;
    if (entry.living) living_ = entry.living.owned();
    else holdings_ = entry.kept.take(structure_);
}

CachedStructure::~CachedStructure() {
    Entry &entry = entries()[slot_];
    if (!may_put_back_ || !is_current() || structure_.is_empty() || entry.living || !entry.kept.is_empty()) return;
    take_entry();
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

bool CachedStructure::replace_refs(OtherRefs &others) {
    if (living_.is_valid()) return false;
    for (auto &[index, ref] : others) ref = structure_.replace_ref(index, std::move(ref));
    return true;
}

bool CachedStructure::is_current() const { return generation_ == own().generation; }

// It must be empty.
void CachedStructure::take_entry() {
    Cache &cache = own();
    Entry &entry = cache.entries[slot_];
    entry.root = root_;
    entry.setting = setting_;
    entry.must_ask = must_ask_;
    cache.was_second[slot_ / 2] = slot_ % 2 != 0;
}

void CachedStructure::register_spec(nb::handle object) {
    Entry &entry = entries()[slot_];
    if (is_current()) entry.reset();  // may run code that empties the cache
    if (!is_current()) return;
    take_entry();
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
    must_ask_ = must_ask_any(nb::inst_ptr<Spec>(spec)->structure());
    register_spec(spec);
    return spec;
}

void CachedStructure::keep(StructureBuilder &&builder) {
    living_.reset();
    Spec(std::move(builder)).swap(structure_);
    holdings_ = {};
    Entry &entry = entries()[slot_];
    must_ask_ = must_ask_any(structure_.structure());
    may_put_back_ = entry.note_and_compare(structure_.structure());
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

// Releasing a structure may run code that begins a walk. Because of the second increment that walk doesn't put a
// structure back that it has taken meanwhile.
void forget_specs(PyTypeObject *type) {
    ++own().generation;
    for (size_t i = 0; i < kSize; ++i)
        if (!type || entries()[i].has_nodes_of(type)) entries()[i].reset();
    ++own().generation;
}

uint64_t cache_generation() { return kFreeThreaded ? types_generation() : own().generation; }

}  // namespace pydag
