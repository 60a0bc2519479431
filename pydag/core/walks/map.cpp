// SPDX-License-Identifier: Apache-2.0
#include "walks/map.h"

#include "structure/paths.h"
#include "walks/match.h"
#include "walks/unflatten.h"

#include <memory>
#include <vector>

namespace pydag {
namespace {

class Results final : public LeafSource {
public:
    Results(nb::handle function, nb::handle extras, const Leaves &leaves,
            const std::vector<std::unique_ptr<Leaves>> &rests)
        : function_(function), extras_(extras), leaves_(leaves), rests_(rests) {}

    nb::object next() override {
        const size_t i = next_++;
        if (!extras_.is_valid() && rests_.empty()) return call_array(function_, leaves_.data() + i, 1);
        arguments_.resize_down(0);
        if (extras_.is_valid()) arguments_.push(PyTuple_GET_ITEM(extras_.ptr(), static_cast<Py_ssize_t>(i)));
        arguments_.push(leaves_[i]);
        for (const auto &rest : rests_) arguments_.push((*rest)[i]);
        return call_array(function_, arguments_.data(), arguments_.size());
    }

private:
    nb::handle function_, extras_;
    const Leaves &leaves_;
    const std::vector<std::unique_ptr<Leaves>> &rests_;
    Buffer<PyObject *, 8> arguments_;  // borrowed from the buffers above
    size_t next_ = 0;
};

}  // namespace

nb::object map(nb::handle function, nb::handle tree, nb::handle rests, const FlattenOptions &options, Extra extra) {
    Flattened parts(tree, options);
    parts.remember();
    const Structure structure = parts.structure();
    std::vector<std::unique_ptr<Leaves>> matched;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(rests.ptr()); ++i) {
        matched.push_back(std::make_unique<Leaves>());
        PyObject *const rest = PyTuple_GET_ITEM(rests.ptr(), i);
        if (!match_known(structure, rest, *matched.back())) match(structure, rest, *matched.back());
    }
    nb::object extras;
    // A tuple: a list could be found by its items' referrers, and changed.
    if (extra == Extra::kPath) extras = checked(PyList_AsTuple(leaf_paths(structure).ptr()));
    if (extra == Extra::kAccessor) extras = checked(PyList_AsTuple(leaf_accessors(structure).ptr()));
    Results results(function, extras, parts.leaves(), matched);
    return unflatten(structure, results, "mapping");
}

nb::object copy(nb::handle tree, const FlattenOptions &options) {
    Flattened parts(tree, options);
    parts.remember();
    return unflatten(parts.structure(), parts.leaves().data());
}

}  // namespace pydag
