// SPDX-License-Identifier: Apache-2.0
#include "walks/jit_call.h"
#include "base/hashed.h"
#include "base/tuples.h"
#include "bind/bind.h"
#include "bind/method.h"
#include "spec/spec.h"
#include "spec/spec_key.h"
#include "structure/owners.h"
#include "walks/result.h"

namespace pydag {
namespace {

nb::object on_make_result(Arguments a) { return make_result(a[0], a[1]); }
nb::object on_open_result(Arguments a) { return open_result(a[0]); }
nb::object on_build_result(Arguments a) { return build_result(a[0]); }

// (function, namespace, identity)
nb::object on_make_flat_call(Arguments a) { return make_flat_call(a[0], a[1], a[2]); }
nb::object on_add_recipe(Arguments a) { return add_recipe(a[0], a[1], a[2]), nb::none(); }
nb::object on_forget_recipes(Arguments a) { return forget_recipes(a[0], a[1]), nb::none(); }
// (flat call, args, kwargs)
nb::object on_call_flat(Arguments a) { return call_flat(a[0], a[1], a[2]); }
nb::object on_hashed(Arguments a) { return make_hashed(a[0]); }

nb::object spec_key(Arguments a) {
    spec_of(a[0]);
    return SpecKeyBox::make(nb::borrow(a[0]));
}

nb::object positions_of(const std::vector<uint32_t> &leaves) {
    nb::object tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(leaves.size())));
    for (size_t i = 0; i < leaves.size(); ++i)
        PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i),
                         checked(PyLong_FromUnsignedLong(leaves[i])).release().ptr());
    return tuple;
}

// (spec), to two tuples: the leaves whose nearest registered owner is a module along some path; of these
// those for which it is none along another.
nb::object on_module_leaves(Arguments a) {
    const ModuleLeaves found = module_leaves(spec_of(a[0]).structure());
    return tuple_of(positions_of(found.owned), positions_of(found.mixed));
}

// (class, namespace). Whether the class is registered there, as one of modules.
nb::object is_module(Arguments a) {
    const NamespaceRef space = Namespace::get(a[1]);
    if (!PyType_Check(a[0])) return nb::borrow(Py_False);
    const TypeInfo info = space->find(reinterpret_cast<PyTypeObject *>(a[0]));
    const bool is_one = info.registration && RegistrationBox::of(info.registration).is_module;
    return nb::borrow(is_one ? Py_True : Py_False);
}

PyMethodDef functions[] = {
    method<2, on_make_result>("make_result"),
    method<1, on_open_result>("open_result"),
    method<1, on_build_result>("build_result"),
    method<3, on_make_flat_call>("flat_call"),
    method<3, on_add_recipe>("add_recipe"),
    method<2, on_forget_recipes>("forget_recipes"),
    method<3, on_call_flat>("call_flat"),
    method<1, on_hashed>("hashed"),
    method<1, spec_key>("spec_key"),
    method<1, on_module_leaves>("module_leaves"),
    method<2, is_module>("is_module"),
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void bind_jit_call(nb::module_ &module) {
    ResultBox::ready("pydag._core.Result", "What a compiled function returns: a PyDagSpec and leaves.");
    module.attr("Result") = ResultBox::type();
    make_jit_call_types();
    module.attr("FlatCall") = FlatCallBox::type();
    make_hashed_type();
    module.attr("Hashed") = HashedBox::type();
    checked(PyModule_AddFunctions(module.ptr(), functions));
    make_spec_key_type(module.attr("spec_key"));
    module.attr("SpecKey") = SpecKeyBox::type();
}

}  // namespace pydag
