// SPDX-License-Identifier: Apache-2.0
#include "walks/flatten.h"

#include "walks/flatten_general.h"
#include "walks/flatten_known.h"

namespace pydag {

Flattened::Flattened(nb::handle tree, const FlattenOptions &options, NodeObjects *objects)
    : cached_(tree.ptr(), options.setting()) {
    is_cached_ = flatten_known(cached_.structure(), tree.ptr(), options, leaves_, objects);
    if (is_cached_) return;
    if (!flatten_pure(tree.ptr(), options, builder_, leaves_, objects))
        GeneralWalk(options, builder_, leaves_, objects).run(tree.ptr());
    is_cached_ = is_same(cached_.structure(), builder_.view());
}

nb::object Flattened::take_spec() { return is_cached_ ? cached_.take_spec() : cached_.take_spec(std::move(builder_)); }

void Flattened::remember() {
    if (is_cached_) return;
    cached_.keep(std::move(builder_));
    is_cached_ = true;
}

}  // namespace pydag
