// SPDX-License-Identifier: Apache-2.0
#include "base/torch_module.h"

#include "base/constants.h"
#include "base/error.h"

namespace pydag {

void refuse_torch_module(nb::handle tree) {
    PyTypeObject *const type = Py_TYPE(tree.ptr());
    if (!is_heap_type(type)) return;
    const nb::object library = find_in_dict(nb::handle(PyImport_GetModuleDict()), nb::handle(constants.torch_nn));
    if (!library.is_valid()) return;
    const nb::object cls = nb::steal(PyObject_GetAttr(library.ptr(), constants.torch_module));
    PyErr_Clear();  // a library that is still being imported has no such class yet
    if (!cls.is_valid() || !PyType_Check(cls.ptr())) return;
    if (!PyType_IsSubtype(type, reinterpret_cast<PyTypeObject *>(cls.ptr()))) return;
    fail(PyExc_TypeError,
         "the tree is a torch.nn.Module (%.200s), which is one leaf, since its class isn't registered\n"
         "  Give pydag.integrations.torch.module_tree(module), the tree of its parameters and buffers. To a file: "
         "save(path, module.state_dict()).",
         type->tp_name);
}

}  // namespace pydag
