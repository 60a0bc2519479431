// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/gc_pause.h"
#include "base/tuples.h"
#include "bind/bind.h"
#include "types/fields.h"

#include <nanobind/stl/optional.h>

namespace pydag {
namespace {

Registration &registration_of(nb::handle box) {
    if (!RegistrationBox::check(box)) fail(PyExc_TypeError, "expected a registration, got %U.", short_repr(box).ptr());
    return RegistrationBox::of(box);
}

Py_ssize_t offset_of(const Registration &registration, nb::handle name) {
    auto *const type = reinterpret_cast<PyTypeObject *>(registration.type.ptr());
    const Py_ssize_t offset = slot_offset(type, name.ptr());
    if (offset == 0) fail(PyExc_ValueError, "%R has no slot %R", registration.type.ptr(), name.ptr());
    return offset;
}

StandIn::Places read_places(const Registration &registration, nb::tuple said) {
    StandIn::Places places;
    for (const nb::handle name : said[0]) places.slots.push_back(offset_of(registration, name));
    const nb::object dict = said[1], kinds = said[2], fresh = said[3];
    places.has_dict = !dict.is_none();
    if (places.has_dict && nb::len(dict) > 0) places.dict_slot = offset_of(registration, dict);
    if (!kinds.is_none()) {
        places.kinds = interned(nb::object(kinds[0]).ptr());
        places.kinds_class = kinds[1];
        places.mapping = interned(nb::object(kinds[2]).ptr());
    }
    if (!fresh.is_none()) places.fresh = offset_of(registration, fresh);
    places.make_fresh = said[4], places.write = said[5];
    return places;
}

bool add_layout(nb::handle box, nb::tuple places, nb::tuple names, nb::tuple children, nb::tuple aux_data,
                nb::handle entries) {
    Registration &registration = registration_of(box);
    if (!registration.stand_in) {
        StandIn::Places read = read_places(registration, places);
        // A stand-in makes instances by `object.__new__`, and the class must let it. It learns from each instance, so
        // where threads run at the same time there is none, and the library's functions do its work.
        if (kFreeThreaded || registration.is_fields || !(read.is_whole() || has_plain_layout(registration.type)))
            return false;
        registration.stand_in = std::make_shared<StandIn>(std::move(read));
    }
    auto *const type = reinterpret_cast<PyTypeObject *>(registration.type.ptr());
    return registration.stand_in->add_layout(type, names, children, aux_data, entries);
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

std::optional<bool> try_stand_in(nb::handle box, nb::handle aux_data, nb::tuple children, nb::handle expected) {
    const Registration &registration = registration_of(box);
    const std::shared_ptr<StandIn> stand_in = registration.stand_in;
    if (!stand_in) return std::nullopt;
    return stand_in->try_out(registration, aux_data.ptr(), &PyTuple_GET_ITEM(children.ptr(), 0),
                             static_cast<uint32_t>(PyTuple_GET_SIZE(children.ptr())), expected.ptr());
}

}  // namespace

void bind_stand_ins(nb::module_ &module) {
    // Lets the core open the instances of another library's class that have this layout: see types/stand_in.h. False if
    // it can't. `places` are (names of slots, name of the slot that has a dict, "" for `__dict__`, (kinds, kinds_class,
    // mapping), name of the fresh slot, make_fresh, write), with None for what there is not.
    module.def(
        "add_layout", add_layout, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(),
        nb::sig("def add_layout(registration: object, places: tuple[object, ...], names: tuple[str, ...], "
                "children: tuple[int, ...], aux_data: tuple[object, ...], entries: tuple[object, ...] | None, /) "
                "-> bool"));
    module.def("open_by_stand_in", open_by_stand_in,
               nb::sig("def open_by_stand_in(registration: object, object: object, /) "
                       "-> tuple[tuple, object, tuple | None] | None"));
    // Lets the core build such instances from now on if it builds `expected`. False if it builds something else, None
    // if it can't build them.
    module.def("try_stand_in", try_stand_in, nb::arg(), nb::arg().none(), nb::arg(), nb::arg(),
               nb::sig("def try_stand_in(registration: object, aux_data: object, children: tuple[object, ...], "
                       "expected: object, /) "
                       "-> bool | None"));
    module.def(
        "drop_stand_in", [](nb::handle box) { registration_of(box).stand_in.reset(); },
        nb::sig("def drop_stand_in(registration: object, /) -> None"));
}

}  // namespace pydag
