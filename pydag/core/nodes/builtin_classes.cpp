// SPDX-License-Identifier: Apache-2.0
#include "nodes/builtin_classes.h"

#include "base/constants.h"
#include "types/registry.h"

namespace pydag {

void add_builtin_classes() {
    set_builtin_class(Kind::kNone, Py_TYPE(Py_None));
    set_builtin_class(Kind::kTuple, &PyTuple_Type);
    set_builtin_class(Kind::kList, &PyList_Type);
    set_builtin_class(Kind::kDict, &PyDict_Type);
    set_builtin_class(Kind::kOrderedDict, &PyODict_Type);
    set_builtin_class(Kind::kDefaultDict, constants.default_dict);
    set_builtin_class(Kind::kDeque, constants.deque);
    if (constants.frozen_dict) set_builtin_class(Kind::kFrozenDict, constants.frozen_dict);
}

}  // namespace pydag
