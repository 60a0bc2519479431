// SPDX-License-Identifier: Apache-2.0
#include "types/learned.h"

#ifdef Py_GIL_DISABLED

#include "base/threads.h"

#include <memory>
#include <unordered_map>

namespace pydag {
namespace {

// Of one thread, by the number of the registration.
struct Lessons {
    static constexpr size_t kMost = 4096;
    static constexpr size_t kRecent = 64;
    struct Recent {
        uint64_t number = 0;
        Learned *learned = nullptr;
    };
    std::unordered_map<uint64_t, std::unique_ptr<Learned>> all;
    Recent recent[kRecent];
    uint32_t num_users = 0;
};
Lessons &own() { return OwnOfThread<Lessons>::get(); }

}  // namespace

uint64_t LearnedByWalks::next_number() {
    static std::atomic<uint64_t> last = 0;
    return ++last;
}

// Registrations that are gone leave their lessons behind, so that from time to time all are forgotten. Nothing is
// released but strings.
Learned &LearnedByWalks::get() {
    Lessons &lessons = own();
    Lessons::Recent &recent = lessons.recent[number_ % Lessons::kRecent];
    if (recent.number == number_) [[likely]]
        return *recent.learned;
    if (lessons.all.size() >= Lessons::kMost && lessons.num_users == 0) {
        lessons.all.clear();
        std::fill(std::begin(lessons.recent), std::end(lessons.recent), Lessons::Recent());
    }
    auto &known = lessons.all[number_];
    if (!known) known = std::make_unique<Learned>(Learned{first_order_, {}});
    recent = {number_, known.get()};
    return *known;
}

LearnedUse::LearnedUse() { ++own().num_users; }
LearnedUse::~LearnedUse() { --own().num_users; }

}  // namespace pydag

#endif
