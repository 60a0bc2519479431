// SPDX-License-Identifier: Apache-2.0
//
// The error for a module of PyTorch that is given as a tree: it would be one leaf, without parameters.
#pragma once

#include "base/capi.h"

namespace pydag {

// Raises TypeError for a module of PyTorch. To be called where the whole tree is one leaf, and no predicate said so.
// Doesn't import PyTorch.
void refuse_torch_module(nb::handle tree);

}  // namespace pydag
