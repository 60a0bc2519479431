// SPDX-License-Identifier: Apache-2.0
//
// What Python can call: one function per topic adds it to the module; module.cpp calls them all.
#pragma once

#include "base/capi.h"

namespace pydag {

void bind_registry(nb::module_ &module);
void bind_stand_ins(nb::module_ &module);
void bind_spec(nb::module_ &module);
void bind_records(nb::module_ &module);
void bind_spec_methods(nb::module_ &module);
void bind_broadcast(nb::module_ &module);
void bind_operations(nb::module_ &module);
void bind_jit_call(nb::module_ &module);
void bind_publish(nb::module_ &module);

}  // namespace pydag
