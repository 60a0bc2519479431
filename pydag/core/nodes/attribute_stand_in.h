// SPDX-License-Identifier: Apache-2.0
//
// Stands in for a library in which each instance says which of its attributes are children.
//
// One attribute of the instance (its kinds) is an object that wraps a dict: from the name of each attribute to
// whether it is a child. The aux_data is (keys of the children, keys of the others, the others). The library decides
// about the order of both, and about their keys. So these are learned for each layout: a set of attributes, and which
// of them are children. Python adds a layout, as the flatten function gave it, when it meets the first instance that
// has it.
#pragma once

#include "types/stand_in.h"

#include <vector>

namespace pydag {

class AttributeStandIn final : public StandIn {
public:
    // `kinds`: the name of the attribute that says which are children. Its value is a `kinds_class`, whose attribute
    // `mapping` is a dict.
    AttributeStandIn(nb::object kinds, nb::object kinds_class, nb::object mapping);
    ~AttributeStandIn() override;

    // `names`: the attributes, those of the children first. False if the layout is known already, or can't be used.
    bool add_layout(PyTypeObject *type, nb::handle children, nb::handle others, nb::handle names, nb::handle entries);

    bool open(PyObject *object, Arena<PyObject *, 24> &arena, Opened &opened) override;
    bool is_mark(PyObject *part) const override { return kinds_class_.is(reinterpret_cast<PyObject *>(Py_TYPE(part))); }
    bool read_known(PyObject *object, PyObject *aux_data, uint32_t count, PyObject **children,
                    bool &owns_children) override;
    nb::object build(const Registration &registration, PyObject *aux_data, PyObject *const *children, uint32_t count,
                     MadeOnce &once, bool is_trial) override;
    void set_tried(PyObject *aux_data, uint32_t count) override;
    void write(PyObject *object, PyObject *aux_data, PyObject *const *children, uint32_t count,
               MadeOnce &once) override;

private:
    class Layout;
    bool is_of_this_version(PyTypeObject *type) const;
    Layout *find(PyObject *aux_data, uint32_t count);
    PyObject *mapping_of(PyObject *kinds) const;

    nb::object kinds_, kinds_class_, mapping_;
    unsigned version_ = 0;  // that of the class when its layouts were tried out
    size_t num_names_ = 0;  // of all layouts
    std::vector<std::unique_ptr<Layout>> layouts_;
    size_t recent_ = 0;  // the layout that was met last
};

}  // namespace pydag
