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
    nb::object build(const Registration &, PyObject *aux_data, PyObject *const *, uint32_t count, MadeOnce &,
                     bool is_trial) override {
        if (!is_tried_ && !is_trial) return nb::object();
        return count == 0 ? nb::borrow(aux_data) : nb::object();
    }
    void set_tried(PyObject *, uint32_t) override { is_tried_ = true; }
    void write(PyObject *, PyObject *, PyObject *const *, uint32_t, MadeOnce &) override {}

private:
    bool is_tried_ = false;
};

}  // namespace pydag
