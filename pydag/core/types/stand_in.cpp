// SPDX-License-Identifier: Apache-2.0
#include "types/stand_in.h"

#include "base/constant_size.h"
#include "base/error.h"
#include "base/tuples.h"
#include "types/alike.h"
#include "types/aux_recipe.h"
#include "types/fields.h"

#include <algorithm>

namespace pydag {
namespace {

constexpr size_t kMostLayouts = 64, kMostNames = size_t{1} << 16;  // of one class

}  // namespace

struct StandIn::Layout {
    AuxRecipe aux_data;
    std::vector<uint32_t> children;  // the numbers of their parts
    nb::object names, entries;
    // The keys of the dict in the order of the instance that was read last, and those of the mapping of its kinds.
    std::vector<DictField> order, order_of_kinds;
    uint32_t kinds = UINT32_MAX;  // the part that has them
    bool is_tried = false;        // whether instances were built as the library does it
    nb::object last_aux_data;     // the last that holds constants alone, which most instances share; or null
    size_t num_names() const { return order.size(); }
};

StandIn::StandIn(Places places) : places_(std::move(places)) {}
StandIn::~StandIn() = default;

bool StandIn::is_of_this_version(PyTypeObject *type) const { return version_ != 0 && version_of(type) == version_; }

bool StandIn::add_layout(PyTypeObject *type, nb::tuple names, nb::tuple children, nb::tuple aux_data,
                         nb::handle entries) {
    const size_t first = places_.slots.size(), count = nb::len(names);
    if (count > kMostNames || !is_filled(names) || (count > 0 && !places_.has_dict)) return false;
    std::vector<bool> is_used(first + count), is_child(first + count);
    auto layout = std::make_unique<Layout>(Layout{AuxRecipe(aux_data, is_used)});
    for (const nb::handle child : children) {
        layout->children.push_back(number_of_part(child, is_used.size()));
        is_used[layout->children.back()] = is_child[layout->children.back()] = true;
    }
    if (!std::all_of(is_used.begin(), is_used.end(), [](bool is_it) { return is_it; })) return false;
    nb::object own_names = checked(PyTuple_New(static_cast<Py_ssize_t>(count)));
    for (size_t i = 0; i < count; ++i) {
        if (!is_exact_str(PyTuple_GET_ITEM(names.ptr(), i))) return false;
        const nb::object name = interned(PyTuple_GET_ITEM(names.ptr(), i));
        const auto part = static_cast<uint32_t>(first + i);
        if (name.is(places_.kinds) && !is_child[part]) layout->kinds = part;
        // Such as a property, whose code would have to run.
        if (!places_.dict_slot && takes_assignment(type, name.ptr())) return false;
        layout->order.push_back({name.ptr(), part, !is_child[part]});
        PyTuple_SET_ITEM(own_names.ptr(), i, incref(name.ptr()));
    }
    if (places_.kinds.is_valid() && layout->kinds == UINT32_MAX) return false;
    if (!is_of_this_version(type)) {
        layouts_.clear();
        num_names_ = 0;
        version_ = assign_version(type);
    }
    if (version_ == 0) return false;
    while (!layouts_.empty() && (layouts_.size() >= kMostLayouts || num_names_ + count > kMostNames)) {
        num_names_ -= layouts_.back()->num_names();
        layouts_.pop_back();
    }
    if (places_.kinds.is_valid()) layout->order_of_kinds = layout->order;
    layout->names = std::move(own_names);
    layout->entries = nb::borrow(entries);
    layouts_.insert(layouts_.begin(), std::move(layout));
    num_names_ += count;
    return true;
}

// The dict that has parts of an instance; null if there is none.
nb::object StandIn::dict_in(PyObject *object) const {
    if (!places_.has_dict) return nb::object();
    if (!places_.dict_slot) return instance_dict(object);
    PyObject *const dict = read_slot(object, places_.dict_slot);
    return dict && PyDict_CheckExact(dict) ? nb::borrow(dict) : nb::object();
}

// The first layout that fits.
template <class Fits>
StandIn::Layout *StandIn::find_layout(const Fits &fits) {
    for (auto layout = layouts_.begin(); layout != layouts_.end(); ++layout) {
        if (!fits(**layout)) continue;
        if (layout != layouts_.begin()) std::rotate(layouts_.begin(), layout, layout + 1);
        return layouts_.front().get();
    }
    return nullptr;
}

// The layout of an instance whose parts it reads, if it also fits.
template <class Fits>
StandIn::Layout *StandIn::read(PyObject *object, Parts &parts, const Fits &fits) {
    if (!is_of_this_version(Py_TYPE(object))) return nullptr;
    const nb::object dict = dict_in(object);
    if (!dict.is_valid() && places_.has_dict) return nullptr;
    const Py_ssize_t size = dict.is_valid() ? PyDict_GET_SIZE(dict.ptr()) : 0;
    // This function has the second reference to the dict.
    parts.are_owned = !dict.is_valid() || places_.dict_slot || has_references(dict.ptr(), 2);
    PyObject **const values = parts.values.extend(places_.slots.size() + static_cast<size_t>(size)), **next = values;
    for (const Py_ssize_t offset : places_.slots)
        if (!(*next++ = read_slot(object, offset))) return nullptr;
    const auto take = [=](const DictField &field, PyObject *value) { values[field.index] = value; };
    return find_layout([&](Layout &layout) {
        return static_cast<Py_ssize_t>(layout.num_names()) == size &&
               (!dict.is_valid() || read_in_order(dict.ptr(), layout.order, take)) && fits(layout);
    });
}

// Whether an instance says that the children of the layout are children, and its other attributes not.
bool StandIn::says_children(Layout &layout, const Parts &parts) const {
    PyObject *const kinds = parts.values[layout.kinds];
    if (!is_mark(kinds)) return false;
    const nb::object dict = instance_dict(kinds);
    const nb::object mapping = dict.is_valid() ? find_by_address(dict.ptr(), places_.mapping.ptr()) : nb::object();
    bool is_said = mapping.is_valid() && PyDict_CheckExact(mapping.ptr());
    const auto check = [&](const DictField &field, PyObject *value) {
        is_said = is_said && value == (field.is_meta ? Py_False : Py_True);
    };
    return is_said && read_in_order(mapping.ptr(), layout.order_of_kinds, check) && is_said;
}

bool StandIn::open(PyObject *object, Arena<PyObject *, 24> &arena, Opened &opened) {
    if (places_.is_whole()) {
        opened = {arena.take(0), 0, nb::borrow(object), nb::none(), true};
        return true;
    }
    Parts parts;
    const bool asks_kinds = places_.kinds.is_valid();
    const auto fits = [&](Layout &layout) { return !asks_kinds || says_children(layout, parts); };
    Layout *const layout = read(object, parts, fits);
    if (!layout) return false;
    PyObject *const *const values = parts.values.data();
    const auto is_there = [=](uint32_t part, PyObject *value) { return values[part] == value; };
    const auto is_constant = [](uint32_t, PyObject *value) { return constant_size(value) != 0; };
    opened.aux_data = layout->last_aux_data;
    if (!opened.aux_data.is_valid() || !layout->aux_data.match(opened.aux_data.ptr(), is_there)) {
        opened.aux_data = layout->aux_data.make(values);
        const bool is_shared = !asks_kinds && layout->aux_data.match(opened.aux_data.ptr(), is_constant);
        if (is_shared) layout->last_aux_data = opened.aux_data;
    }
    opened.count = static_cast<uint32_t>(layout->children.size());
    opened.children = arena.take(opened.count);
    for (uint32_t i = 0; i < opened.count; ++i) opened.children[i] = values[layout->children[i]];
    opened.entries = layout->entries;
    opened.owns_children = parts.are_owned;
    return true;
}

bool StandIn::read_known(PyObject *object, PyObject *aux_data, uint32_t count, PyObject **children,
                         bool &owns_children) {
    // Another instance may be equal to aux_data, which only Python code could tell.
    if (places_.is_whole()) return (owns_children = true) && object == aux_data && count == 0;
    Parts parts;
    // The kinds are a part of aux_data, and so they are those that said which parts are children.
    Layout *const layout = read(object, parts, [&](Layout &found) {
        const auto is_there = [values = parts.values.data()](uint32_t part, PyObject *value) {
            return values[part] == value;
        };
        return found.children.size() == count && found.aux_data.match(aux_data, is_there);
    });
    if (!layout) return false;
    for (uint32_t i = 0; i < count; ++i) children[i] = parts.values[layout->children[i]];
    owns_children = parts.are_owned;
    return true;
}

// The layout from which aux_data was made, and the parts of an instance that has it and these children.
StandIn::Layout *StandIn::find_described(PyObject *aux_data, PyObject *const *children, uint32_t count, Parts &parts) {
    return find_layout([&](const Layout &layout) {
        if (places_.is_whole()) return count == 0;
        parts.values.resize_down(0);
        PyObject **const values = parts.values.extend(places_.slots.size() + layout.num_names());
        const auto take = [=](uint32_t part, PyObject *value) { return (values[part] = value) != nullptr; };
        if (layout.children.size() != count || !layout.aux_data.match(aux_data, take)) return false;
        for (uint32_t i = 0; i < count; ++i) values[layout.children[i]] = children[i];
        return true;
    });
}

nb::object StandIn::build(const Registration &registration, PyObject *aux_data, PyObject *const *children,
                          uint32_t count, MadeOnce &once, bool is_trial) {
    nb::object fresh = places_.fresh ? once.get(places_.make_fresh) : nb::object();  // first: code runs
    if (!is_of_this_version(reinterpret_cast<PyTypeObject *>(registration.type.ptr()))) return nb::object();
    Parts parts;
    const Layout *const layout = find_described(aux_data, children, count, parts);
    if (!layout || !(layout->is_tried || is_trial)) return nb::object();
    if (places_.is_whole()) return nb::borrow(aux_data);
    PyObject *const *values = parts.values.data();
    const nb::object names = layout->names;  // the layout may go when code of the class runs
    nb::object object = new_instance(registration);
    for (const Py_ssize_t offset : places_.slots) slot_at(object.ptr(), offset) = incref(*values++);
    if (places_.fresh) slot_at(object.ptr(), places_.fresh) = fresh.release().ptr();
    PyObject *const *const keys = &PyTuple_GET_ITEM(names.ptr(), 0);
    const auto num_keys = static_cast<size_t>(PyTuple_GET_SIZE(names.ptr()));
    if (places_.dict_slot) slot_at(object.ptr(), places_.dict_slot) = dict_of(keys, values, num_keys).release().ptr();
    else
        for (size_t i = 0; i < num_keys; ++i) checked(PyObject_GenericSetAttr(object.ptr(), keys[i], values[i]));
    return object;
}

// Whether two instances have the same parts in the same order, and in their fresh slot what is alike.
bool StandIn::has_same_parts(PyObject *a, PyObject *b) const {
    if (places_.is_whole() || Py_TYPE(a) != Py_TYPE(b)) return a == b;
    Objects parts, others;
    for (const auto &[object, found] : {std::pair(a, &parts), std::pair(b, &others)}) {
        for (const Py_ssize_t offset : places_.slots) found->push(read_slot(object, offset));
        if (const nb::object dict = dict_in(object); dict.is_valid()) add_items(dict.ptr(), *found);
    }
    // The library may have made the names of attributes anew, of numbers.
    const auto are_same = [](PyObject *x, PyObject *y) { return are_alike(x, y, 0); };
    return std::equal(parts.data(), parts.data() + parts.size(), others.data(), others.data() + others.size(),
                      are_same) &&
           (!places_.fresh || are_alike(read_slot(a, places_.fresh), read_slot(b, places_.fresh), 2));
}

std::optional<bool> StandIn::try_out(const Registration &registration, PyObject *aux_data, PyObject *const *children,
                                     uint32_t count, PyObject *expected) {
    MadeOnce once;
    const nb::object built = build(registration, aux_data, children, count, once, true);
    if (!built.is_valid()) return std::nullopt;
    if (!has_same_parts(built.ptr(), expected)) return false;
    Parts parts;
    if (Layout *const layout = find_described(aux_data, children, count, parts)) layout->is_tried = true;
    return true;
}

// The library may refuse a write, by comparing what `make_fresh` gave the instance with what it would give now. If
// both are alike, the library would agree, and isn't asked.
void StandIn::write(PyObject *object, PyObject *aux_data, PyObject *const *children, uint32_t count,
                    MadeOnce &once) const {
    if (count == 1 && places_.fresh && is_of_this_version(Py_TYPE(object))) {
        const nb::object now = once.get(places_.make_fresh), then = nb::borrow(read_slot(object, places_.fresh));
        if (is_of_this_version(Py_TYPE(object)) && then.is_valid() && are_alike(then.ptr(), now.ptr(), 2)) {
            exchange_slot(object, places_.slots[0], nb::borrow(*children)).reset();
            return;
        }
    }
    call(places_.write, nb::handle(object), nb::handle(aux_data), tuple_of(children, count));
}

}  // namespace pydag
