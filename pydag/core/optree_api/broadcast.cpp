// SPDX-License-Identifier: Apache-2.0
#include "optree_api/broadcast.h"

#include "base/pair_set.h"
#include "structure/descent.h"
#include "structure/node_difference.h"
#include "structure/prefix.h"
#include "structure/writer.h"
#include "walks/walks.h"

#include <algorithm>

namespace pydag {
namespace {

// Goes down both structures in step. Each slot of the full one has a partner: the node of the prefix at the
// same path, or the leaf of the prefix below which the slot lies.
class Broadcaster {
public:
    Broadcaster(const Structure &prefix, PyObject *const *leaves, const Structure &full, Wanted wanted, Broadcast &made)
        : prefix_(prefix),
          full_(full),
          leaves_(leaves),
          wanted_(wanted),
          made_(made),
          writer_(made.result),
          space_(Namespace::get(full.namespace_)),
          partners_(full.num_nodes, kUnmet),
          written_(full.num_shared),
          values_(full.num_leaves) {}

    void run() {
        walk(0, 0, [this](Visit &visit) { return write(visit); });
        for (const Visit &again : again_)
            walk(again.slot, again.partner, [this](Visit &visit) { return hold_against_first(visit); });
        writer_.finish(full_.structure.none_is_leaf, nb::borrow(namespace_of_result()));
        for (PyObject *const value : values_) made_.values_of_full.push_borrowed(value ? value : Py_None);
    }

private:
    static constexpr uint32_t kUnmet = UINT32_MAX;
    static constexpr uint32_t kMisfit = UINT32_MAX - 1;  // the partner of what the prefix doesn't fit
    using Visit = Descent::Visit;                        // of a slot of the full structure with its partner

    template <class Function>
    void walk(uint32_t slot, uint32_t partner, Function visit) {
        walk_.run(slot, partner, [&](Visit next) {
            if (next.partner < kMisfit) next.partner = prefix_.resolve(next.partner);
            if (visit(next)) go_below(next);
        });
    }

    bool is_leaf(uint32_t partner) const { return partner >= kMisfit || prefix_.node(partner).is_leaf(); }
    PyObject *answer(uint32_t leaf) const { return leaves_[prefix_.leaf(leaf)]; }

    // Writes an object when it is first met. Returns whether there is something below it.
    bool write(Visit &visit) {
        const uint32_t position = full_.resolve(visit.slot);
        const Node node = full_.node(position);
        if (partners_[position] != kUnmet) {
            again_.push_back(visit);
            writer_.repeat(written_[full_.number(position)]);
            return false;
        }
        if (node.is_anchor) written_[full_.number(position)] = writer_.position();
        if (!is_leaf(visit.partner)) check_fit(visit, position);
        partners_[position] = visit.partner;
        if (is_leaf(visit.partner)) writer_.add(node, full_.refs(position));
        else writer_.add(prefix_.node(visit.partner), prefix_.refs(visit.partner));
        if (!node.is_leaf()) return true;
        PyObject *const value = visit.partner == kMisfit ? Py_None : answer(visit.partner);
        values_[full_.leaf(position)] = value;
        made_.values.push_borrowed(value);
        return false;
    }

    // Compares the partner of an object that is met again with its first one. Returns whether to go below it.
    bool hold_against_first(Visit &visit) {
        const uint32_t position = full_.resolve(visit.slot), first = partners_[position];
        if (visit.partner == first || visit.partner == kMisfit || first == kMisfit) return false;
        if (!met_.add(position, visit.partner)) return false;
        const Node node = full_.node(position);
        if (is_leaf(visit.partner) && is_leaf(first)) {
            if (is_same_answer(*space_, answer(first), answer(visit.partner))) return false;
            if (node.is_leaf()) add_conflict(visit, position, answer(first), answer(visit.partner));
            return !node.is_leaf();
        }
        if (!is_leaf(visit.partner)) check_fit(visit, position);
        if (visit.partner == kMisfit) return false;
        if (wanted_ == Wanted::kLeaves || is_written_alike(position, first, visit.partner)) return true;
        add_conflict(visit, position, nullptr, nullptr);
        return false;
    }

    // Whether an object is written in the same way with either of two partners.
    bool is_written_alike(uint32_t position, uint32_t a, uint32_t b) const {
        const Node node = full_.node(position);
        PyObject *const *const refs = full_.refs(position);
        return are_alike(is_leaf(a) ? node : prefix_.node(a), is_leaf(a) ? refs : prefix_.refs(a),
                         is_leaf(b) ? node : prefix_.node(b), is_leaf(b) ? refs : prefix_.refs(b));
    }

    void check_fit(Visit &visit, uint32_t position) {
        const Node node = prefix_.node(visit.partner), other = full_.node(position);
        PyObject *const *const refs = prefix_.refs(visit.partner), *const *const others = full_.refs(position);
        try {
            const Fit fit = other.is_leaf() ? Fit::kOtherKind : fit_node(node, refs, other, others, order_);
            if (fit == Fit::kFits) return;
            visit.partner = kMisfit;
            if (wanted_ == Wanted::kConflicts) return;
            if (other.is_leaf()) fail(PyExc_ValueError, "Expected %s, got a leaf.", outline(node, refs).c_str());
            fail(PyExc_ValueError, "%s.", misfit(fit, node, refs, other, others).c_str());
        } catch (...) {
            walk_.rethrow_at(visit, "broadcasting");
        }
    }

    // In the order of the prefix. `order_` was made for this pair of nodes.
    void go_below(const Visit &visit) {
        const uint32_t position = full_.resolve(visit.slot);
        auto add = walk_.below(visit, full_.node(position).count);
        if (is_leaf(visit.partner))
            return full_.for_each_slot(position, [&](uint32_t slot) { add(slot, visit.partner); });
        in_full_.clear();
        full_.for_each_slot(position, [&](uint32_t slot) { in_full_.push_back(slot); });
        uint32_t i = 0;
        prefix_.for_each_slot(visit.partner, [&](uint32_t slot) {
            add(in_full_[order_.empty() ? i : order_[i]], slot);
            ++i;
        });
    }

    // The walk goes on after a conflict, since a node that doesn't fit is reported rather than any conflict.
    void add_conflict(const Visit &visit, uint32_t position, PyObject *first, PyObject *other) {
        if (!made_.conflicts.empty() && wanted_ != Wanted::kConflicts) return;
        const std::string path = path_of(full_.structure, position);
        made_.conflicts.push_back({path, path_text(walk_.path_to(visit)), first ? nb::borrow(first) : nb::object(),
                                   other ? nb::borrow(other) : nb::object()});
    }

    PyObject *namespace_of_result() const {
        PyObject *const own = full_.structure.namespace_;
        return PyUnicode_GET_LENGTH(own) > 0 ? own : prefix_.structure.namespace_;
    }

    const IndexedStructure prefix_, full_;
    Descent walk_{full_};
    PyObject *const *leaves_;
    const Wanted wanted_;
    Broadcast &made_;
    StructureWriter writer_;
    const NamespaceRef space_;
    std::vector<uint32_t> partners_;  // the first partner of each object of the full structure
    std::vector<uint32_t> written_;   // where each anchor of it is written, by its number
    std::vector<PyObject *> values_;  // of each leaf of it
    std::vector<Visit> again_;
    PairSet<uint32_t, uint32_t> met_;
    std::vector<uint32_t> order_, in_full_;
};

}  // namespace

void broadcast(const Structure &prefix, PyObject *const *leaves, const Structure &full, Wanted wanted,
               Broadcast &made) {
    Broadcaster(prefix, leaves, full, wanted, made).run();
}

}  // namespace pydag
