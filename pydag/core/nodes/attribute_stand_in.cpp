// SPDX-License-Identifier: Apache-2.0
#include "nodes/attribute_stand_in.h"

#include "base/equality.h"
#include "base/error.h"
#include "nodes/attribute_layout.h"
#include "types/fields.h"
#include "types/keys.h"

#include <algorithm>

namespace pydag {
namespace {

constexpr size_t kMostLayouts = 64, kMostNames = size_t{1} << 16;  // of one class

// The `__dict__` of an instance; null, and no error, if it has none.
nb::object dict_of(PyObject *object) {
    nb::object dict = nb::steal(PyObject_GenericGetDict(object, nullptr));
    if (!dict.is_valid()) PyErr_Clear();
    return dict;
}

bool is_tuple_of(PyObject *object, size_t count) {
    return PyTuple_CheckExact(object) && PyTuple_GET_SIZE(object) == static_cast<Py_ssize_t>(count) &&
           is_filled(object);
}

PyObject *item(PyObject *tuple, size_t i) { return PyTuple_GET_ITEM(tuple, i); }

}  // namespace

AttributeStandIn::AttributeStandIn(nb::object kinds, nb::object kinds_class, nb::object mapping)
    : kinds_(interned(kinds.ptr())), kinds_class_(std::move(kinds_class)), mapping_(interned(mapping.ptr())) {}

AttributeStandIn::~AttributeStandIn() = default;

bool AttributeStandIn::is_of_this_version(PyTypeObject *type) const {
    return version_ != 0 && version_of(type) == version_;
}

bool AttributeStandIn::add_layout(PyTypeObject *type, nb::handle children, nb::handle others, nb::handle names,
                                  nb::handle entries) {
    const size_t num_children = static_cast<size_t>(PyTuple_GET_SIZE(children.ptr())),
                 count = num_children + static_cast<size_t>(PyTuple_GET_SIZE(others.ptr()));
    if (!is_tuple_of(names.ptr(), count) || count > kMostNames) return false;
    if (!entries.is_none() && !is_tuple_of(entries.ptr(), num_children)) return false;
    if (!is_of_this_version(type)) {
        layouts_.clear();
        num_names_ = 0;
        version_ = assign_version(type);
    }
    nb::object own_names = checked(PyTuple_New(static_cast<Py_ssize_t>(count)));
    size_t kinds = count;
    for (size_t i = 0; i < count; ++i) {
        if (!is_exact_str(item(names.ptr(), i))) return false;
        nb::object name = interned(item(names.ptr(), i));
        if (name.is(kinds_)) kinds = i;
        if (takes_assignment(type, name.ptr())) return false;  // such as a property, whose code would have to run
        PyTuple_SET_ITEM(own_names.ptr(), i, name.release().ptr());
    }
    if (version_ == 0 || kinds < num_children || kinds == count) return false;
    const auto is_it = [&](const std::unique_ptr<Layout> &layout) {
        return layout->num_children() == num_children && are_equal_objects(layout->names(), own_names);
    };
    if (std::any_of(layouts_.begin(), layouts_.end(), is_it)) return false;
    while (!layouts_.empty() && (layouts_.size() >= kMostLayouts || num_names_ + count > kMostNames)) {
        num_names_ -= layouts_.front()->size();
        layouts_.erase(layouts_.begin());
    }
    layouts_.push_back(std::make_unique<Layout>(children, others, std::move(own_names), entries, kinds));
    num_names_ += count;
    recent_ = layouts_.size() - 1;
    return true;
}

// The dict that an instance's kinds wrap, borrowed; null if they wrap none.
PyObject *AttributeStandIn::mapping_of(PyObject *kinds) const {
    if (!kinds_class_.is(as_object(Py_TYPE(kinds)))) return nullptr;
    const nb::object dict = dict_of(kinds);
    if (!dict.is_valid()) return nullptr;
    Py_ssize_t position = 0;
    for (PyObject *key, *value; PyDict_Next(dict.ptr(), &position, &key, &value);)
        if (mapping_.is(key)) return PyDict_CheckExact(value) ? value : nullptr;
    return nullptr;
}

bool AttributeStandIn::open(PyObject *object, Arena<PyObject *, 24> &arena, Opened &opened) {
    if (layouts_.empty() || !is_of_this_version(Py_TYPE(object))) return false;
    const nb::object dict = dict_of(object);
    if (!dict.is_valid()) return false;
    const auto size = static_cast<size_t>(PyDict_GET_SIZE(dict.ptr()));
    Buffer<PyObject *, 32> values;
    values.extend(size);
    for (size_t tried = 0; tried < layouts_.size(); ++tried) {
        const size_t index = tried == 0 ? recent_ : tried - (tried <= recent_);
        Layout &layout = *layouts_[index];
        if (!layout.read(dict.ptr(), values.data())) continue;
        PyObject *const mapping = mapping_of(layout.kinds(values.data()));
        if (!mapping || !layout.is_said_by(mapping)) continue;
        recent_ = index;
        opened.count = static_cast<uint32_t>(layout.num_children());
        opened.children = arena.take(layout.num_children());
        std::copy_n(values.data(), layout.num_children(), opened.children);
        opened.aux_data = layout.aux_data(values.data());
        opened.entries = layout.entries();
        opened.owns_children = has_references(dict.ptr(), 2);  // this function's is the second one
        return true;
    }
    return false;
}

// The layout from which aux_data was made, which has the layout's own tuples.
AttributeStandIn::Layout *AttributeStandIn::find(PyObject *aux_data, uint32_t count) {
    if (!is_tuple_of(aux_data, 3) || layouts_.empty()) return nullptr;
    const auto fits = [=](const Layout &layout) { return layout.is_described_by(aux_data); };
    size_t index = recent_;
    if (!fits(*layouts_[index]))
        for (index = 0; index < layouts_.size() && !fits(*layouts_[index]); ++index) {
        }
    if (index == layouts_.size()) return nullptr;
    recent_ = index;
    Layout &layout = *layouts_[index];
    const bool is_whole = layout.num_children() == count && is_tuple_of(item(aux_data, 2), layout.size() - count);
    return is_whole ? &layout : nullptr;
}

bool AttributeStandIn::read_known(PyObject *object, PyObject *aux_data, uint32_t count, PyObject **children,
                                  bool &owns_children) {
    if (!is_of_this_version(Py_TYPE(object))) return false;
    Layout *const layout = find(aux_data, count);
    if (!layout) return false;
    const nb::object dict = dict_of(object);
    if (!dict.is_valid()) return false;
    Buffer<PyObject *, 32> values;
    values.extend(layout->size());
    if (!layout->read(dict.ptr(), values.data())) return false;
    // The kinds are one of the others, and so the same object as before, which never changes what it says.
    const auto *const expected = &PyTuple_GET_ITEM(item(aux_data, 2), 0);
    if (!std::equal(expected, expected + layout->size() - count, values.data() + count)) return false;
    std::copy_n(values.data(), count, children);
    owns_children = has_references(dict.ptr(), 2);
    return true;
}

nb::object AttributeStandIn::build(const Registration &registration, PyObject *aux_data, PyObject *const *children,
                                   uint32_t count, MadeOnce &, bool is_trial) {
    if (!is_of_this_version(reinterpret_cast<PyTypeObject *>(registration.type.ptr()))) return nb::object();
    const Layout *const layout = find(aux_data, count);
    if (!layout || !(layout->is_tried || is_trial)) return nb::object();
    const nb::object names = layout->names();  // the layout may go when code of the class runs
    const auto size = static_cast<size_t>(PyTuple_GET_SIZE(names.ptr()));
    nb::object object = new_instance(registration);
    for (size_t i = 0; i < size; ++i) {
        PyObject *const value = i < count ? children[i] : item(item(aux_data, 2), i - count);
        checked(PyObject_GenericSetAttr(object.ptr(), item(names.ptr(), i), value));
    }
    return object;
}

void AttributeStandIn::set_tried(PyObject *aux_data, uint32_t count) {
    if (Layout *const layout = find(aux_data, count)) layout->is_tried = true;
}

// Assigns to the attributes: so the class decides what may be assigned, and when.
void AttributeStandIn::write(PyObject *object, PyObject *aux_data, PyObject *const *children, uint32_t count,
                             MadeOnce &) {
    const nb::object keys = nb::borrow(is_tuple_of(aux_data, 3) ? item(aux_data, 0) : aux_data);
    if (!is_tuple_of(keys.ptr(), count))
        fail(PyExc_TypeError, "the children of a %.200s can't be changed: they have no names",
             Py_TYPE(object)->tp_name);
    for (uint32_t i = 0; i < count; ++i) {
        const nb::object name = checked(PyObject_Str(item(keys.ptr(), i)));
        const nb::object dict = checked(PyObject_GenericGetDict(object, nullptr));
        const nb::object before = nb::borrow(PyDict_GetItemWithError(dict.ptr(), name.ptr()));
        if (!before.is_valid() && PyErr_Occurred()) nb::raise_python_error();
        if (!before.is(children[i])) checked(PyObject_SetAttr(object, name.ptr(), children[i]));
    }
}

}  // namespace pydag
