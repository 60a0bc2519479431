// SPDX-License-Identifier: Apache-2.0
//
// How aux_data is made of the parts of an instance: see `StandIn::add_layout`.
#pragma once

#include "base/buffer.h"
#include "base/error.h"

#include <vector>

namespace pydag {

inline uint32_t number_of_part(nb::handle number, size_t num_parts) {
    const size_t part = PyLong_Check(number.ptr()) ? PyLong_AsSize_t(number.ptr()) : num_parts;
    PyErr_Clear();
    if (part >= num_parts) fail(PyExc_ValueError, "%U is no number of a part", short_repr(number).ptr());
    return static_cast<uint32_t>(part);
}

class AuxRecipe {
public:
    // Marks the parts that it has in `used`.
    AuxRecipe(nb::tuple said, std::vector<bool> &used) {
        for (const nb::handle row : said) {
            Row &made = rows_.emplace_back(Row{PyTuple_Check(row.ptr()) != 0, {}});
            if (!made.is_tuple) made.items.push_back(item_of(row, used));
            else
                for (const nb::handle item : nb::borrow<nb::tuple>(row)) made.items.push_back(item_of(item, used));
        }
    }
    // Calls `take(part, object)` for each part in aux_data, from left to right. False if it isn't made so, or if `take`
    // says false.
    template <class Take>
    bool match(PyObject *aux_data, const Take &take) const {
        if (!is_tuple_of(aux_data, rows_.size())) return false;
        PyObject *const *next = &PyTuple_GET_ITEM(aux_data, 0);
        for (const Row &row : rows_) {
            PyObject *const *found = next++;
            if (row.is_tuple) {
                if (!*found || !is_tuple_of(*found, row.items.size())) return false;
                found = &PyTuple_GET_ITEM(*found, 0);
            }
            for (const Item &item : row.items) {
                PyObject *const object = *found++;
                if (!object || !(item.constant.is_valid() ? item.constant.is(object) : take(item.part, object)))
                    return false;
            }
        }
        return true;
    }
    nb::object make(PyObject *const *parts) const {
        RefBuffer<16> made;
        for (const Row &row : rows_) {
            const size_t base = made.size();
            for (const Item &item : row.items)
                made.push_borrowed(item.constant.is_valid() ? item.constant.ptr() : parts[item.part]);
            if (row.is_tuple) made.push_new(made.take_tuple(base));
        }
        return made.take_tuple();
    }

private:
    struct Item {
        nb::object constant;  // null: a part
        uint32_t part;
    };
    struct Row {
        bool is_tuple;  // false: its only item
        std::vector<Item> items;
    };
    static Item item_of(nb::handle said, std::vector<bool> &used) {
        if (PyList_Check(said.ptr()) && PyList_GET_SIZE(said.ptr()) == 1)
            return {nb::borrow(PyList_GET_ITEM(said.ptr(), 0)), 0};
        const uint32_t part = number_of_part(said, used.size());
        used[part] = true;
        return {nb::object(), part};
    }
    static bool is_tuple_of(PyObject *object, size_t count) {
        return PyTuple_CheckExact(object) && PyTuple_GET_SIZE(object) == static_cast<Py_ssize_t>(count);
    }

    std::vector<Row> rows_;
};

}  // namespace pydag
