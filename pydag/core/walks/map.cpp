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
    // `ways`: what the function gets before the leaf, or null.
    Results(nb::handle function, const Ways *ways, const Leaves &leaves,
            const std::vector<std::unique_ptr<Leaves>> &rests)
        : function_(function), ways_(ways), leaves_(leaves), rests_(rests) {}

    nb::object next() override {
        const size_t i = next_++;
        if (!ways_ && rests_.empty()) return call_array(function_, leaves_.data() + i, 1);
        arguments_.resize_down(0);
        if (ways_) arguments_.push((*ways_)[i]);
        arguments_.push(leaves_[i]);
        for (const auto &rest : rests_) arguments_.push((*rest)[i]);
        return call_array(function_, arguments_.data(), arguments_.size());
    }

private:
    nb::handle function_;
    const Ways *ways_;
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
    Ways ways;  // not a list: that could be found by its items' referrers, and changed
    if (extra == Extra::kPath) add_paths(structure, ways);
    if (extra == Extra::kAccessor) add_accessors(structure, ways);
    Results results(function, extra == Extra::kNone ? nullptr : &ways, parts.leaves(), matched);
    return unflatten(structure, results, "mapping");
}

nb::object copy(nb::handle tree, const FlattenOptions &options) {
    Flattened parts(tree, options);
    parts.remember();
    return unflatten(parts.structure(), parts.leaves().data());
}

}  // namespace pydag
