// SPDX-License-Identifier: Apache-2.0
//
// The attributes of some instances of one class, and which of them are children: see attribute_stand_in.h.
#pragma once

#include "base/tuples.h"
#include "nodes/attribute_stand_in.h"

#include <algorithm>

namespace pydag {

class AttributeStandIn::Layout {
public:
    Layout(nb::handle children, nb::handle others, nb::object names, nb::handle entries, size_t kinds)
        : children_(nb::borrow(children)),
          others_(nb::borrow(others)),
          names_(std::move(names)),
          entries_(nb::borrow(entries)),
          num_children_(static_cast<size_t>(PyTuple_GET_SIZE(children.ptr()))),
          kinds_(kinds) {
        for (size_t i = 0; i < size(); ++i) order_.push_back({PyTuple_GET_ITEM(names_.ptr(), i), i});
    }
    bool is_tried = false;  // whether instances were built as the library does it
    size_t size() const { return static_cast<size_t>(PyTuple_GET_SIZE(names_.ptr())); }
    size_t num_children() const { return num_children_; }
    const nb::object &names() const { return names_; }
    const nb::object &entries() const { return entries_; }
    // The values of an instance: see `read`.
    PyObject *kinds(PyObject *const *values) const { return values[kinds_]; }

    bool is_described_by(PyObject *aux_data) const {
        return children_.is(PyTuple_GET_ITEM(aux_data, 0)) && others_.is(PyTuple_GET_ITEM(aux_data, 1));
    }
    nb::object aux_data(PyObject *const *values) const {
        return tuple_of(nb::object(children_), nb::object(others_),
                        tuple_of(values + num_children_, size() - num_children_));
    }

    // Reads the values of all attributes, in the order of the names. False if the dict has others.
    bool read(PyObject *dict, PyObject **values) {
        if (PyDict_GET_SIZE(dict) != static_cast<Py_ssize_t>(size())) return false;
        Py_ssize_t position = 0;
        PyObject *key, *value;
        for (auto next = order_.begin(); next != order_.end(); ++next) {
            if (!PyDict_Next(dict, &position, &key, &value)) return false;
            if (!next->is_of(key)) {  // learn the order of this instance, for the next one
                const auto found = std::find_if(next, order_.end(), [=](const Attribute &x) { return x.is_of(key); });
                if (found == order_.end()) return false;
                std::iter_swap(next, found);
            }
            values[next->index] = value;
        }
        return true;
    }

    // Whether a mapping says that the children of this layout are children, and the others not.
    bool is_said_by(PyObject *mapping) {
        if (is_as_before(mapping)) return true;
        std::vector<Said> said;
        Py_ssize_t position = 0;
        for (PyObject *key, *value; PyDict_Next(mapping, &position, &key, &value);) {
            if (!is_exact_str(key) || !PyBool_Check(value)) return false;
            said.push_back({nb::borrow(key), value});
        }
        for (const Attribute &attribute : order_) {  // all keys are strings, so the lookup runs no code
            PyObject *const value = PyDict_GetItemWithError(mapping, attribute.name);
            if ((value == Py_True) != (attribute.index < num_children_)) return false;
        }
        said_ = std::move(said);
        return true;
    }

private:
    struct Attribute {
        PyObject *name;  // borrowed from the names, in which it has this index
        size_t index;
        // Equal strings may be two objects: a library may make the names anew for each instance.
        bool is_of(PyObject *key) const { return key == name || (is_exact_str(key) && is_same_name(name, key)); }
    };
    struct Said {
        nb::object name;
        PyObject *value;  // True or False
    };

    bool is_as_before(PyObject *mapping) const {
        if (said_.empty() || PyDict_GET_SIZE(mapping) != static_cast<Py_ssize_t>(said_.size())) return false;
        Py_ssize_t position = 0;
        PyObject *key, *value;
        for (const Said &said : said_)
            if (!PyDict_Next(mapping, &position, &key, &value) || !said.name.is(key) || said.value != value)
                return false;
        return true;
    }

    nb::object children_, others_, names_, entries_;
    size_t num_children_, kinds_;
    std::vector<Attribute> order_;  // the order of the attributes in the instance that was read last
    std::vector<Said> said_;        // the items of the mapping that was read last
};

}  // namespace pydag
