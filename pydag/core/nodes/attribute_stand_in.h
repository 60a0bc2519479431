// SPDX-License-Identifier: Apache-2.0
//
// Stands in for a library whose instances say themselves which of their attributes are children.
//
// One attribute of each instance (its kinds) is an object that wraps a dict: for the name of each attribute,
// whether it is a child. The aux_data is (keys of the children, keys of the others, the others). In which order both
// come, and what their keys are, is the library's business: it is known for each layout, which is a set of
// attributes together with which of them are children. Python adds a layout when it meets the first instance that
// has it, as the flatten function gave it.
#pragma once

#include "types/stand_in.h"

#include <vector>

namespace pydag {

class AttributeStandIn final : public StandIn {
public:
    // `kinds`: the attribute that says which are children; it is a `kinds_class`, whose attribute `mapping` is a dict.
    AttributeStandIn(nb::object kinds, nb::object kinds_class, nb::object mapping);
    ~AttributeStandIn() override;

    // `names`: the attributes, those of the children first. False where such a layout is there already, or can't be.
    bool add_layout(PyTypeObject *type, nb::handle children, nb::handle others, nb::handle names, nb::handle entries);

    bool open(PyObject *object, Arena<PyObject *, 24> &arena, Opened &opened) override;
    bool read_known(PyObject *object, PyObject *aux_data, uint32_t count, PyObject **children,
                    bool &owns_children) override;
    nb::object build(const Registration &registration, PyObject *aux_data, PyObject *const *children, uint32_t count,
                     MadeOnce &once) override;
    void write(PyObject *object, PyObject *aux_data, PyObject *const *children, uint32_t count,
               MadeOnce &once) override;

private:
    class Layout;
    bool is_of_this_version(PyTypeObject *type) const;
    Layout *find(PyObject *aux_data, uint32_t count);
    PyObject *mapping_of(PyObject *kinds) const;

    nb::object kinds_, kinds_class_, mapping_;
    unsigned version_ = 0;  // of the class when its layouts were tried out
    size_t num_names_ = 0;  // of all layouts
    std::vector<std::unique_ptr<Layout>> layouts_;
    size_t recent_ = 0;  // the layout that was met last
};

}  // namespace pydag
