// SPDX-License-Identifier: Apache-2.0
#include "spec/cache.h"

#include "base/identity_table.h"
#include "types/keys.h"

#include <utility>

namespace pydag {
namespace {

constexpr size_t kSize = 64;
// How many nodes the structures may have that no spec owns, all in all: some 50 MB.
constexpr size_t kMostNodes = 1 << 22;

// Tells structures apart by little: the size, and the first key.
uint64_t mark_of(const Structure &structure) {
    uint64_t mark = structure.num_nodes + (uint64_t{structure.num_refs} << 32);
    for (uint32_t i = 0; i < structure.num_refs; ++i) {
        if (!KeysBox::check(structure.refs[i]) || KeysBox::of(structure.refs[i]).size() == 0) continue;
        return mark ^ hash_address(KeysBox::of(structure.refs[i]).inserted_key(0));
    }
    return mark;
}

struct Entry {
    Setting setting;
    const Spec *living = nullptr;  // takes itself out when it is destroyed
    nb::object living_ref;         // a weak reference: a spec that is dying must not be handed out
    Spec structure;
    uint64_t last_mark = 0;  // of the structure that came last

    // Whether this structure, or one like it, came before: one that comes for the first time is not
    // worth the place of another one, nor the memory.
    bool comes_again(const Structure &structure) {
        const uint64_t mark = mark_of(structure);
        return std::exchange(last_mark, mark) == mark;
    }

    // Keeps a structure that no spec owns, if there is room. It is taken from `from`.
    void put(Spec &from) {
        const size_t size = from.structure_or_empty().num_nodes;
        if (num_kept + size > kMostNodes) return;
        num_kept += size;
        structure.swap(from);
    }
    // Gives it away again, to `to`, which is empty.
    void take(Spec &to) {
        num_kept -= structure.structure_or_empty().num_nodes;
        to.swap(structure);
    }
    static inline size_t num_kept = 0;  // of nodes

    // Empties the entry. Releasing what it held may run code that comes back here.
    void reset() {
        Spec dropped;
        take(dropped);
        living = nullptr;
        const nb::object dropped_ref = std::move(living_ref);
    }
};
// Lives as long as the process: destroying it after the interpreter is gone would crash.
Entry *entries() {
    static Entry *const table = new Entry[kSize];
    return table;
}

uint64_t generation = 0;  // how often the cache has been emptied

// Of a few objects: their classes, and how many items they have.
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

// By the looks of the root; of a tuple's items, too: the arguments of a call are a tuple in a tuple.
size_t slot_of(PyObject *root, const Setting &setting) {
    RootHash hash;
    hash.add(root);
    hash.add_items(hash.add_items(root));
    return (hash.value() ^ hash_address(setting.space) >> 32 ^ setting.none_is_leaf) % kSize;
}

bool is_constant(PyObject *ref) {
    return ref == Py_None || PyType_Check(ref) || PyLong_CheckExact(ref) || PyBool_Check(ref) ||
           PyFloat_CheckExact(ref) || is_exact_str(ref);
}

bool is_harmless(PyObject *ref) {
    if (KeysBox::check(ref)) return KeysBox::of(ref).has_only_strings;
    if (RegistrationBox::check(ref)) return RegistrationBox::of(ref).is_fields();
    if (!PyTuple_CheckExact(ref)) return is_constant(ref);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(ref); ++i)
        if (!is_constant(PyTuple_GET_ITEM(ref, i))) return false;
    return true;
}

bool is_worth_keeping(const Structure &structure) {
    for (uint32_t i = 0; i < structure.num_refs; ++i)
        if (!is_harmless(structure.refs[i])) return false;
    return true;
}

}  // namespace

CachedStructure::CachedStructure(PyObject *root, const Setting &setting)
    : slot_(slot_of(root, setting)), generation_(generation), setting_(setting) {
    Entry &entry = entries()[slot_];
    if (entry.setting != setting) return;
    if (entry.living) living_ = dereference(entry.living_ref);
    else entry.take(structure_);
}

CachedStructure::~CachedStructure() {
    Entry &entry = entries()[slot_];
    if (!may_put_back_ || !is_current() || structure_.is_empty() || entry.living || !entry.structure.is_empty()) return;
    entry.setting = setting_;
    entry.put(structure_);
}

const Structure &CachedStructure::structure() const {
    return living_.is_valid() ? nb::inst_ptr<Spec>(living_)->structure_or_empty() : structure_.structure_or_empty();
}

bool CachedStructure::is_current() const { return generation_ == generation; }

void CachedStructure::register_spec(nb::handle object) {
    nb::object weakref = checked(PyWeakref_NewRef(object.ptr(), nullptr));
    Entry &entry = entries()[slot_];
    if (is_current()) entry.reset();  // may run code that empties the cache
    if (!is_current()) return;
    entry.setting = setting_;
    entry.living = nb::inst_ptr<Spec>(object);
    entry.living_ref = std::move(weakref);
    nb::inst_ptr<Spec>(object)->set_slot(static_cast<int>(slot_));
}

nb::object CachedStructure::take_spec() {
    if (living_.is_valid()) return living_;
    nb::object spec = make_spec(std::move(structure_));
    register_spec(spec);
    return spec;
}

nb::object CachedStructure::take_spec(StructureBuilder &&builder) {
    nb::object spec = make_spec(Spec(std::move(builder)));
    if (is_worth_keeping(nb::inst_ptr<Spec>(spec)->structure())) register_spec(spec);
    return spec;
}

void CachedStructure::keep(StructureBuilder &&builder) {
    living_.reset();
    Spec(std::move(builder)).swap(structure_);
    Entry &entry = entries()[slot_];
    may_put_back_ = entry.comes_again(structure_.structure()) && is_worth_keeping(structure_.structure());
    if (may_put_back_) entry.reset();
}

void Spec::leave_cache() {
    if (slot_ < 0) return;
    Entry &entry = entries()[std::exchange(slot_, -1)];
    if (entry.living != this) return;
    entry.living = nullptr;
    if (!is_empty() && entry.comes_again(structure_)) entry.put(*this);
    const nb::object dropped_ref = std::move(entry.living_ref);
}

void forget_specs() {
    ++generation;
    for (size_t i = 0; i < kSize; ++i) entries()[i].reset();
}

}  // namespace pydag
