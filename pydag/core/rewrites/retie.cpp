// SPDX-License-Identifier: Apache-2.0
#include "base/pair_set.h"
#include "rewrites/rewrites.h"
#include "spec/spec.h"
#include "walks/walks.h"

#include <utility>
#include <vector>

namespace pydag {
namespace {

class Copies final : public Answers {
public:
    Copies(nb::handle are_equal, nb::handle combine) : are_equal_(are_equal), combine_(combine) {}

    bool accept(uint32_t leaf, PyObject *first, PyObject *other) override {
        if (!combine_.is_valid()) {
            const nb::object a = nb::borrow(first), b = nb::borrow(other);
            return checked(PyObject_IsTrue(call(are_equal_, a, b).ptr())) != 0;
        }
        if (met_.add(leaf, other)) others_.emplace_back(leaf, nb::borrow(other));
        return true;
    }

    // Replaces the first copy of each leaf by the result of folding all of its copies.
    void fold(Leaves &found) {
        for (auto &[leaf, other] : others_) {
            const nb::object first = nb::borrow(found[leaf]);
            found.replace(leaf, call(combine_, first, other));
        }
    }

private:
    nb::handle are_equal_, combine_;
    std::vector<std::pair<uint32_t, nb::object>> others_;  // the further copies of each leaf
    PairSet<uint32_t, nb::handle> met_;
};

}  // namespace

nb::object retie(nb::handle spec, nb::handle tree, nb::handle are_equal, nb::handle combine) {
    const nb::object owned = nb::borrow(spec);
    const Structure &structure = spec_of(owned).structure();
    Leaves found;
    Copies copies(are_equal, combine);
    match(structure, tree.ptr(), found, copies);
    copies.fold(found);
    return unflatten(structure, found.data());
}

}  // namespace pydag
