// SPDX-License-Identifier: Apache-2.0
//
// Builds a node from its children: the other half of open.h.
#pragma once

#include "nodes/open.h"
#include "structure/node_refs.h"

#include <span>

namespace pydag {
namespace detail {
nb::object build_dict(PyObject *const *refs, Stack &values, size_t base);
nb::object copy_dict(PyObject *const *refs, PyObject *source, std::span<const uint32_t> changed, Stack &values,
                     size_t base);
nb::object build_ordered_dict(PyObject *const *refs, Stack &values, size_t base);
nb::object build_default_dict(PyObject *const *refs, Stack &values, size_t base);
nb::object build_frozen_dict(PyObject *const *refs, Stack &values, size_t base);
nb::object build_deque(PyObject *const *refs, Stack &values, size_t base);
nb::object build_custom(PyObject *const *refs, Stack &values, size_t base, MadeOnce &once);
nb::object build_fields(PyObject *const *refs, Stack &values, size_t base);

// As `_make` does: the class's own `__new__` may have another signature.
inline nb::object build_namedtuple(PyObject *const *refs, Stack &values, size_t base) {
    auto *const type = reinterpret_cast<PyTypeObject *>(TupleClassRefs{refs}.type());
    nb::object tuple = tuple_of_class(type, values.data() + base, values.size() - base);
    values.forget_to(base);
    return tuple;
}
}  // namespace detail

// Whether building a node of this kind with the references `refs` runs no Python code.
inline bool is_built_by_core(Kind kind, PyObject *const *refs) {
    switch (kind) {
        case Kind::kCustom:
            return false;
        case Kind::kDict:
        case Kind::kOrderedDict:
        case Kind::kDefaultDict:
        case Kind::kFrozenDict:
            return MappingRefs{refs}.keys().has_constant_hashes;
        case Kind::kFields: {  // Python says which methods of an abstract class are missing
            PyObject *const type = FieldsRefs{refs}.registration().type.ptr();
            return !PyType_HasFeature(reinterpret_cast<PyTypeObject *>(type), Py_TPFLAGS_IS_ABSTRACT);
        }
        default:
            return true;
    }
}

// Builds the node of this kind with the references `refs` from the objects in `values` from `base`
// on, and removes them. After an exception `values` still owns all that is in it. `once` is for all nodes that one
// walk builds.
inline nb::object build_node(Kind kind, PyObject *const *refs, Stack &values, size_t base, MadeOnce &once) {
    using namespace detail;
    switch (kind) {
        case Kind::kNone:
            return nb::none();
        case Kind::kTuple:
            return values.take_tuple(base);
        case Kind::kList:
            return values.take_list(base);
        case Kind::kDict:
            return build_dict(refs, values, base);
        case Kind::kNamedTuple:
            return build_namedtuple(refs, values, base);
        case Kind::kOrderedDict:
            return build_ordered_dict(refs, values, base);
        case Kind::kDefaultDict:
            return build_default_dict(refs, values, base);
        case Kind::kFrozenDict:  // GCOVR_EXCL_START: Python 3.15
            return build_frozen_dict(refs, values, base);
        // GCOVR_EXCL_STOP
        case Kind::kDeque:
            return build_deque(refs, values, base);
        case Kind::kStructSequence:
            return call(nb::handle(TupleClassRefs{refs}.type()), values.take_tuple(base));
        case Kind::kCustom:
            return build_custom(refs, values, base, once);
        case Kind::kFields:
            return build_fields(refs, values, base);
        case Kind::kLeaf:  // GCOVR_EXCL_START: nobody builds these
        case Kind::kAlias:
            break;
    }
    nb::raise("leaves and aliases are not built");
    // GCOVR_EXCL_STOP
}

// A node without content that gets it later; None for kinds that are made with it.
inline nb::object empty_node(Kind kind) {
    if (kind == Kind::kList) return checked(PyList_New(0));
    return kind == Kind::kDict ? checked(PyDict_New()) : nb::none();
}

// As `build_node`, where `source` is such a node already: `changed` has the indices, in the order of the structure,
// of the children that aren't those of `source`.
inline nb::object copy_node(Node node, PyObject *const *refs, PyObject *source, std::span<const uint32_t> changed,
                            Stack &values, MadeOnce &once) {
    const size_t base = values.size() - node.count;
    if (node.kind == Kind::kDict) return detail::copy_dict(refs, source, changed, values, base);
    return build_node(node.kind, refs, values, base, once);
}

}  // namespace pydag
