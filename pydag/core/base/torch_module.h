// SPDX-License-Identifier: Apache-2.0
//
// A module of PyTorch that is given as a tree: its class is rarely registered, so it is one leaf, in which no function
// would find a parameter. In a container it is a leaf like any other.
#pragma once

#include "base/capi.h"

namespace pydag {

// Raises TypeError for a tree that is a module of PyTorch. To be called where the whole tree turned out to be one leaf,
// and no predicate wanted it so. Doesn't import PyTorch.
void refuse_torch_module(nb::handle tree);

}  // namespace pydag
