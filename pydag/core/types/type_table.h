// SPDX-License-Identifier: Apache-2.0
//
// What is remembered of each class that was looked up.
#pragma once

#include "types/class_table.h"
#include "types/namespace.h"

#include <memory>

namespace pydag {

struct KnownType {
    nb::object registration = {};  // what `info` borrows
    TypeInfo info = {};
};

struct TypeTable : ClassTable<KnownType> {
    std::unique_ptr<TypeTable> next;  // of those that wait to be released
};

}  // namespace pydag
