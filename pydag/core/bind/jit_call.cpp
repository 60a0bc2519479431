// SPDX-License-Identifier: Apache-2.0
#include "walks/jit_call.h"
#include "base/constants.h"
#include "base/tuples.h"
#include "bind/bind.h"
#include "bind/method.h"
#include "spec/spec.h"
#include "spec/spec_key.h"
#include "structure/owners.h"
#include "walks/result.h"

namespace pydag {
namespace {

FlattenOptions options_of_call(PyObject *namespace_, PyObject *identity) {
    FlattenOptions options = FlattenOptions::parse(nb::none(), nb::handle(Py_False), namespace_, identity);
    options.root = nb::borrow(constants.argument_names);
    return options;
}

nb::object on_make_result(Arguments a) { return make_result(a[0], a[1]); }
nb::object on_open_result(Arguments a) { return open_result(a[0]); }
nb::object on_build_result(Arguments a) { return build_result(a[0]); }

// (function, known, (args, kwargs), namespace, identity)
nb::object on_call_flat(Arguments a) { return call_flat(a[0], a[1], a[2], options_of_call(a[3], a[4])); }

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
    method<5, on_call_flat>("call_flat"),
    method<1, spec_key>("spec_key"),
    method<1, on_module_leaves>("module_leaves"),
    method<2, is_module>("is_module"),
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void bind_jit_call(nb::module_ &module) {
    ResultBox::ready("pydag._core.Result", "What a compiled function returns: a PyDagSpec and leaves.");
    module.attr("Result") = ResultBox::type();
    checked(PyModule_AddFunctions(module.ptr(), functions));
    make_spec_key_type(module.attr("spec_key"));
    module.attr("SpecKey") = SpecKeyBox::type();
}

}  // namespace pydag
