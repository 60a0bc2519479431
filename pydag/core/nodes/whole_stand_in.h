// SPDX-License-Identifier: Apache-2.0
//
// Stands in for a library whose instances have no children and are their own aux_data.
#pragma once

#include "types/stand_in.h"

namespace pydag {

class WholeStandIn final : public StandIn {
public:
    bool open(PyObject *object, Arena<PyObject *, 24> &arena, Opened &opened) override {
        opened = {arena.take(0), 0, nb::borrow(object), nb::none(), true};
        return true;
    }
    // Another instance may be equal to `aux_data`, which only Python code could tell.
    bool read_known(PyObject *object, PyObject *aux_data, uint32_t count, PyObject **, bool &owns_children) override {
        owns_children = true;
        return object == aux_data && count == 0;
    }
    nb::object build(const Registration &, PyObject *aux_data, PyObject *const *, uint32_t count, MadeOnce &) override {
        return count == 0 ? nb::borrow(aux_data) : nb::object();
    }
    void write(PyObject *, PyObject *, PyObject *const *, uint32_t, MadeOnce &) override {}
};

}  // namespace pydag
