// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/gc_pause.h"
#include "base/tuples.h"
#include "bind/bind.h"
#include "nodes/attribute_stand_in.h"
#include "nodes/slot_stand_in.h"
#include "nodes/whole_stand_in.h"
#include "types/fields.h"

namespace pydag {
namespace {

Registration &registration_of(nb::handle box) {
    if (!RegistrationBox::check(box)) fail(PyExc_TypeError, "expected a registration, got %U.", short_repr(box).ptr());
    return RegistrationBox::of(box);
}

PyTypeObject *type_of(const Registration &registration) {
    return reinterpret_cast<PyTypeObject *>(registration.type.ptr());
}

// A stand-in makes instances by `object.__new__`, and the class must let it. It learns from each instance, so where
// threads run at the same time there is none, and the library's functions do its work.
bool can_have_stand_in(const Registration &registration) {
    return !kFreeThreaded && !registration.is_fields && has_plain_layout(registration.type);
}

Py_ssize_t offset_of(const Registration &registration, nb::handle name) {
    const Py_ssize_t offset = slot_offset(type_of(registration), name.ptr());
    if (offset == 0) fail(PyExc_ValueError, "%R has no slot %R", registration.type.ptr(), name.ptr());
    return offset;
}

bool stand_in_by_slots(nb::handle box, nb::handle child, nb::object entry, nb::handle items, nb::tuple plain,
                       nb::handle fresh, nb::object make_fresh, nb::object write) {
    Registration &registration = registration_of(box);
    if (!can_have_stand_in(registration)) return false;
    SlotStandIn::Slots slots;
    if (!child.is_none()) slots.child = offset_of(registration, child);
    slots.entries = child.is_none() ? nb::none() : tuple_of(std::move(entry));
    if (!items.is_none()) slots.items = offset_of(registration, items);
    for (nb::handle name : plain) slots.plain.push_back(offset_of(registration, name));
    slots.fresh = offset_of(registration, fresh);
    slots.make_fresh = std::move(make_fresh), slots.write = std::move(write);
    registration.stand_in = std::make_shared<SlotStandIn>(type_of(registration), std::move(slots));
    return true;
}

bool stand_in_by_attributes(nb::handle box, nb::str kinds, nb::object kinds_class, nb::str mapping) {
    Registration &registration = registration_of(box);
    if (!can_have_stand_in(registration)) return false;
    registration.stand_in = std::make_shared<AttributeStandIn>(kinds, std::move(kinds_class), mapping);
    return true;
}

bool stand_in_as_whole(nb::handle box) {
    Registration &registration = registration_of(box);
    if (kFreeThreaded || registration.is_fields) return false;  // as above: threads would replace it for each other
    registration.stand_in = std::make_shared<WholeStandIn>();
    return true;
}

bool add_layout(nb::handle box, nb::tuple children, nb::tuple others, nb::tuple names, nb::object entries) {
    Registration &registration = registration_of(box);
    auto *const stand_in = dynamic_cast<AttributeStandIn *>(registration.stand_in.get());
    return stand_in && stand_in->add_layout(type_of(registration), children, others, names, entries);
}

nb::object open_by_stand_in(nb::handle box, nb::handle object) {
    const Registration &registration = registration_of(box);
    if (!registration.stand_in || !registration.type.is(as_object(Py_TYPE(object.ptr())))) return nb::none();
    Arena<PyObject *, 24> arena;
    StandIn::Opened opened;
    nb::object children;
    {
        const GcPause pause;
        if (!registration.stand_in->open(object.ptr(), arena, opened)) return nb::none();
        children = tuple_of(opened.children, opened.count);
    }
    return tuple_of(std::move(children), std::move(opened.aux_data), std::move(opened.entries));
}

nb::object build_by_stand_in(nb::handle box, nb::handle aux_data, nb::tuple children) {
    const Registration &registration = registration_of(box);
    const std::shared_ptr<StandIn> stand_in = registration.stand_in;
    if (!stand_in) return nb::none();
    MadeOnce once;
    const auto count = static_cast<uint32_t>(PyTuple_GET_SIZE(children.ptr()));
    nb::object built =
        stand_in->build(registration, aux_data.ptr(), &PyTuple_GET_ITEM(children.ptr(), 0), count, once, true);
    return built.is_valid() ? built : nb::none();
}

}  // namespace

void bind_stand_ins(nb::module_ &module) {
    // Lets the core open and build the instances of another library's class by their slots. False if it can't. `child`
    // is the slot of the only child, if there is one, and `entry` its name. The aux_data are the sorted items of the
    // dict in the slot `items`, or else the values of the slots `plain`. The slot `fresh` gets `make_fresh()`.
    // `write(instance, child)` puts in another child.
    module.def("stand_in_by_slots", stand_in_by_slots, nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg().none(),
               nb::arg(), nb::arg(), nb::arg(), nb::arg().none(),
               nb::sig("def stand_in_by_slots(registration: object, child: str | None, entry: str | None, "
                       "items: str | None, plain: tuple[str, ...], fresh: str, make_fresh: object, write: object, /) "
                       "-> bool"));
    // Lets the core open and build them by their attributes. The attribute `kinds`, a `kinds_class` whose `mapping` is
    // a dict, says which of them are children. Nothing is opened so before layouts are added.
    module.def("stand_in_by_attributes", stand_in_by_attributes,
               nb::sig("def stand_in_by_attributes(registration: object, kinds: str, kinds_class: type, mapping: str, "
                       "/) -> bool"));
    // Lets the core take each instance for its own aux_data, without children. False if it can't.
    module.def("stand_in_as_whole", stand_in_as_whole,
               nb::sig("def stand_in_as_whole(registration: object, /) -> bool"));
    // Adds a layout: the keys of the children and of the others, the names of all these attributes, and the entries of
    // the children. False if it is known already, or can't be used.
    module.def("add_layout", add_layout, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(),
               nb::sig("def add_layout(registration: object, children: tuple, others: tuple, names: tuple[str, ...], "
                       "entries: tuple | None, /) -> bool"));
    module.def("open_by_stand_in", open_by_stand_in,
               nb::sig("def open_by_stand_in(registration: object, object: object, /) "
                       "-> tuple[tuple, object, tuple | None] | None"));
    module.def("build_by_stand_in", build_by_stand_in, nb::arg(), nb::arg().none(), nb::arg(),
               nb::sig("def build_by_stand_in(registration: object, aux_data: object, children: tuple, /) -> object"));
    // Lets the core build such instances from now on.
    module.def(
        "set_stand_in_tried",
        [](nb::handle box, nb::handle aux_data, uint32_t count) {
            if (const std::shared_ptr<StandIn> stand_in = registration_of(box).stand_in)
                stand_in->set_tried(aux_data.ptr(), count);
        },
        nb::arg(), nb::arg().none(), nb::arg(),
        nb::sig("def set_stand_in_tried(registration: object, aux_data: object, count: int, /) -> None"));
    module.def(
        "has_stand_in", [](nb::handle box) { return registration_of(box).stand_in != nullptr; },
        nb::sig("def has_stand_in(registration: object, /) -> bool"));
    module.def(
        "drop_stand_in", [](nb::handle box) { registration_of(box).stand_in.reset(); },
        nb::sig("def drop_stand_in(registration: object, /) -> None"));
}

}  // namespace pydag
