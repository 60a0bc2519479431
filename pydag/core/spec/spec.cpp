// SPDX-License-Identifier: Apache-2.0
#include "spec/spec.h"

#include "base/constants.h"
#include "base/error.h"
#include "base/stack_room.h"
#include "base/text_hash.h"
#include "structure/cursor.h"
#include "structure/node_refs.h"
#include "structure/paths.h"
#include "types/classes.h"
#include "types/keys.h"
#include "types/registration.h"

#include <cstdlib>
#include <new>
#include <vector>

namespace pydag {

Spec::Spec(StructureBuilder &&builder) : structure_(builder.view()) {
    // One block: the nodes, then the references.
    const Node *const nodes = builder.nodes.hand_over(size_in_bytes());
    auto *const refs = reinterpret_cast<PyObject **>(const_cast<Node *>(nodes) + structure_.num_nodes);
    std::copy_n(structure_.refs, structure_.num_refs, refs);
    structure_.nodes = nodes;
    structure_.refs = refs;
    builder.refs.forget_to(0);
    builder.namespace_.release();
}

namespace {

// The class of a node that may be of one or of another; null for other nodes.
PyObject *class_of_node(Kind kind, PyObject *const *refs) {
    if (!has_many_classes(kind)) return nullptr;
    return is_registered(kind) ? node_registration(refs).type.ptr() : TupleClassRefs{refs}.type();
}

uint64_t mark_of_class(PyObject *type) { return uint64_t{1} << (hash_address(type) >> 58); }

}  // namespace

bool Spec::has_nodes_of(PyTypeObject *cls) {
    PyObject *const type = as_object(cls);
    if (is_empty()) return false;
    constexpr uint64_t kMade = 1;  // so the classes with this mark are always looked for
    if (!class_marks_) {
        class_marks_ = kMade;
        for (Cursor at(structure_); at.is_at_node(); at.step())
            if (PyObject *const found = class_of_node(at.kind(), at.refs())) class_marks_ |= mark_of_class(found);
    }
    if (!(class_marks_ & mark_of_class(type))) return false;
    for (Cursor at(structure_); at.is_at_node(); at.step())
        if (class_of_node(at.kind(), at.refs()) == type) return true;
    return false;
}

namespace {

// The hash of a string, or of the strings in a tuple without an equality of its own, by their texts and indices. All
// else doesn't count, since equal objects may differ in it.
uint64_t hash_of_texts(PyObject *object) {
    if (PyUnicode_Check(object)) return mix_text(1, object);
    uint64_t hash = 0;
    const bool is_tuple = Py_TYPE(object)->tp_richcompare == PyTuple_Type.tp_richcompare;
    for (Py_ssize_t i = 0; is_tuple && i < PyTuple_GET_SIZE(object); ++i) {
        PyObject *const item = PyTuple_GET_ITEM(object, i);
        if (item && PyUnicode_Check(item)) hash = mix_text(mix(hash, static_cast<uint64_t>(i)), item);
    }
    return hash;
}

// The hash of each reference of a structure. They must be asked for in their order.
class RefHash {
public:
    explicit RefHash(const Structure &structure) : at_(structure) {}

    uint64_t of(PyObject *const *ref) {
        if (KeysBox::check(*ref)) return KeysBox::of(*ref).hash();
        if (RegistrationBox::check(*ref)) return of_class(RegistrationBox::of(*ref).type.ptr());
        const bool says_nothing = *ref == Py_None || *ref == constants.no_items;
        return says_nothing ? 0 : of_role(find_role(ref), *ref);
    }

private:
    static uint64_t of_class(PyObject *type) { return hash_of_class(reinterpret_cast<PyTypeObject *>(type)); }
    static uint64_t of_role(Role role, PyObject *ref) {
        if (role == Role::kClass) return of_class(ref);
        return role == Role::kMeta || role == Role::kAuxData ? hash_of_texts(ref) : 0;
    }
    Role find_role(PyObject *const *ref) {
        while (at_.refs() + num_refs(at_.node()) <= ref) at_.step();
        return traits(at_.kind()).roles[ref - at_.refs()];
    }

    Cursor at_;  // at the node of a reference before
};

}  // namespace

Py_hash_t Spec::hash() const {
    if (const Py_hash_t known = hash_.load(std::memory_order_relaxed); known != -1) return known;
    // Several lanes, so that a multiplication need not wait for the one before.
    uint64_t lanes[4] = {structure_.num_leaves, structure_.num_shared, structure_.none_is_leaf, structure_.num_nodes};
    for (uint32_t i = 0; i < structure_.num_nodes; ++i) {
        uint64_t bits;
        std::memcpy(&bits, &structure_.nodes[i], sizeof bits);
        uint64_t &lane = lanes[i % 4];
        lane = mix(lane, bits);
    }
    size_t next = 0;
    RefHash refs(structure_);
    for (PyObject *const &ref : structure_.all_refs()) {
        uint64_t &lane = lanes[next++ % 4];
        lane = mix(lane, refs.of(&ref));
    }
    uint64_t result = 0;
    for (const uint64_t lane : lanes) result = (result ^ lane) * 0xC2B2AE3D27D4EB4Fu, result ^= result >> 29;
    const Py_hash_t hash = static_cast<Py_hash_t>(result) == -1 ? -2 : static_cast<Py_hash_t>(result);
    hash_.store(hash, std::memory_order_relaxed);
    return hash;
}

nb::object Spec::keep_paths() {
    constexpr uint32_t kMostLeaves = 50'000;
    if (PyObject *const known = paths_.load(std::memory_order_acquire)) return nb::borrow(known);
    if (structure_.num_leaves > kMostLeaves) return nb::object();
    Ways paths;
    add_paths(structure(), paths);
    constexpr size_t kBytesOfTuple = 64;
    size_t num_bytes = structure_.num_leaves * kBytesOfTuple;
    for (size_t i = 0; i < paths.size(); ++i)
        num_bytes += static_cast<size_t>(PyTuple_GET_SIZE(paths[i])) * sizeof(PyObject *);
    nb::object made = paths.take_tuple();
    PyObject *known = nullptr;
    if (!paths_.compare_exchange_strong(known, made.ptr())) return nb::borrow(known);
    bytes_of_paths_.store(num_bytes, std::memory_order_relaxed);
    incref(made.ptr());
    return made;
}

int Spec::traverse(visitproc visit, void *arg) const {
    Py_VISIT(paths_.load(std::memory_order_relaxed));
    for (PyObject *const ref : structure_.all_refs())
        if (const int status = visit(ref, arg)) return status;
    return 0;
}

namespace {

void release(const Structure &structure) {
    for (PyObject *const ref : structure.all_refs()) decref(ref);
    if (structure.namespace_) decref(structure.namespace_);
    std::free(const_cast<Node *>(structure.nodes));
}

// Puts a structure off until the one that is being released is done. False without memory: no exception may leave a
// slot that the collector calls.
bool wait(std::vector<Structure> &waiting, const Structure &structure) {
    try {
        waiting.push_back(structure);
        return true;
    } catch (const std::bad_alloc &) {
        return false;  // GCOVR_EXCL_LINE: no test makes that request fail
    }
}

}  // namespace

// Empties the spec before it releases anything, since a finalizer may use it. A spec may be the last owner of another
// spec, and so on: from some depth on they wait in a list, so that the stack doesn't overflow.
void Spec::clear() {
    constexpr int kDeepest = 50;
    static PYDAG_OWN_OF_THREAD int depth = 0;
    static PYDAG_OWN_OF_THREAD std::vector<Structure> waiting;
    const nb::object old_paths = nb::steal(take_paths());
    bytes_of_paths_.store(0, std::memory_order_relaxed);
    const Structure old = std::exchange(structure_, {});
    if (depth >= kDeepest && wait(waiting, old)) return;
    ++depth;
    release(old);
    while (depth == 1 && !waiting.empty()) {
        const Structure next = waiting.back();
        waiting.pop_back();
        release(next);
    }
    --depth;
}

void Spec::fail_empty() { fail(PyExc_ValueError, "This PyDagSpec is empty: it was never restored."); }

nb::object make_spec(Spec &&spec) { return nb::cast(std::move(spec)); }

const Spec &spec_of(nb::handle object) {
    require_stack_room();
    if (!nb::isinstance<Spec>(object)) {
        refuse_torch_module(object);
        fail(PyExc_TypeError, "Expected a PyDagSpec, got %U.\n  pydag.dag_structure(tree) gives the spec of a tree.",
             short_repr(object).ptr());
    }
    static const Spec *const empty = new Spec;
    return nb::inst_ready(object) ? *nb::inst_ptr<Spec>(object) : *empty;
}

}  // namespace pydag
