// SPDX-License-Identifier: Apache-2.0
//
// An object that everything has in common that one walk builds: it is made when it is first wanted.
#pragma once

#include "base/capi.h"

namespace pydag {

class MadeOnce {
public:
    // What `function()` returned when this walk first asked for it.
    nb::object get(nb::handle function) {
        if (!made_.is_valid() || !function_.is(function)) {
            made_ = call(function);
            function_ = nb::borrow(function);
        }
        return made_;
    }

private:
    nb::object function_, made_;
};

}  // namespace pydag
