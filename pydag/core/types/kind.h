// SPDX-License-Identifier: Apache-2.0
//
// The table of the kinds of node: what everything needs to know of each. What a kind *means*, how it is
// opened, built, written into and matched, stands in nodes/ and nowhere else.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace pydag {

enum class Kind : uint8_t {
    kLeaf,
    kNone,
    kAlias,  // a later occurrence of a shared object
    kTuple,
    kList,
    kDict,
    kOrderedDict,
    kDefaultDict,
    kDeque,
    kNamedTuple,
    kStructSequence,
    kCustom,  // a class with a flatten function
    kFields,  // a class that is opened by its fields
    kFrozenDict,
};
inline constexpr size_t kNumKinds = 14;

// Where the entries of a node's children come from.
enum class Entries : uint8_t {
    kIndex,
    kKeys,          // the keys of a mapping
    kNames,         // the names of attributes
    kTupleFields,   // an index; the class names the attributes by `_fields`
    kStructFields,  // the same of a struct sequence class
    kCustom,        // the flatten function may have given them
};

// What a reference is that a node keeps in its structure.
enum class Role : uint8_t {
    kNothing,
    kSortedKeys,  // Keys, in sorted order where they have one
    kKeys,        // Keys, in the order of insertion
    kNames,       // Keys: the names of the fields, those found in `__dict__` in sorted order
    kClass,       // of a tuple
    kFactory,     // callable, or None
    kMaxlen,      // an int, or None
    kRegistration,
    kAuxData,
    kMeta,     // a tuple: the values of the meta fields
    kEntries,  // a tuple, or None where children are numbered
};
inline constexpr size_t kNumRoles = 11, kMostRefs = 3;

struct KindTraits {
    const char *name;
    Role roles[kMostRefs];  // of its references, in their order
    Entries entries;
    bool has_identity;  // false: a value, opened anew at every occurrence
    bool is_mapping;    // all mappings match one another
    uint8_t tree_kind;  // its number in optree.PyTreeKind
    uint8_t code;       // in pickles: never change one
};

// One row for each kind, in their order.
inline constexpr KindTraits kKindTraits[kNumKinds] = {
    {"leaf", {}, Entries::kIndex, true, false, 1, 1},
    {"None", {}, Entries::kIndex, false, false, 2, 2},
    {"alias", {}, Entries::kIndex, false, false, 0, 12},
    {"tuple", {}, Entries::kIndex, false, false, 3, 3},
    {"list", {}, Entries::kIndex, true, false, 4, 4},
    {"dict", {Role::kSortedKeys}, Entries::kKeys, true, true, 5, 5},
    {"OrderedDict", {Role::kKeys}, Entries::kKeys, true, true, 7, 7},
    {"defaultdict", {Role::kSortedKeys, Role::kFactory}, Entries::kKeys, true, true, 8, 8},
    {"deque", {Role::kMaxlen}, Entries::kIndex, true, false, 9, 9},
    {"namedtuple", {Role::kClass}, Entries::kTupleFields, false, false, 6, 6},
    {"struct sequence", {Role::kClass}, Entries::kStructFields, false, false, 10, 10},
    {"custom type", {Role::kRegistration, Role::kAuxData, Role::kEntries}, Entries::kCustom, true, false, 0, 0},
    {"fields", {Role::kRegistration, Role::kNames, Role::kMeta}, Entries::kNames, true, false, 0, 11},
    {"frozendict", {Role::kSortedKeys}, Entries::kKeys, false, true, 11, 13},
};

// What a spec's text has around a node's children; without children there is only `empty`, if given.
//   %n  the name of the class           %q  with its module
//   %d  aux_data or the factory         %o  maxlen or the meta fields, as name=value
//   %,  a comma, behind a single child
struct KindText {
    const char *open, *close, *empty = nullptr;
};
inline constexpr KindText kKindTexts[kNumKinds] = {
    {"*", ""},                                 // leaf
    {"None", ""},                              // None
    {"*", ""},                                 // alias; its number follows
    {"(", "%,)"},                              // tuple
    {"[", "]"},                                // list
    {"{", "}"},                                // dict
    {"OrderedDict({", "})", "OrderedDict()"},  // OrderedDict
    {"defaultdict(%d, {", "})"},               // defaultdict
    {"deque([", "]%o)", "deque(%o)"},          // deque
    {"%n(", ")"},                              // namedtuple
    {"%q(", ")"},                              // struct sequence
    {"CustomTreeNode(%n[%d], [", "])"},        // custom type
    {"%n(", "%o)"},                            // fields
    {"frozendict({", "})", "frozendict()"},    // frozendict
};

constexpr const KindTraits &traits(Kind kind) { return kKindTraits[static_cast<size_t>(kind)]; }

constexpr const KindText &kind_text(Kind kind) { return kKindTexts[static_cast<size_t>(kind)]; }

// Kinds that have something in common, to be asked for it often.
class KindSet {
public:
    template <class Predicate>
    constexpr explicit KindSet(Predicate has_it) {
        for (size_t i = 0; i < kNumKinds; ++i) bits_ |= uint32_t{has_it(kKindTraits[i])} << i;
    }
    constexpr bool has(Kind kind) const { return bits_ >> static_cast<uint32_t>(kind) & 1; }

private:
    uint32_t bits_ = 0;
};

constexpr bool is_leaf(Kind kind) { return kind == Kind::kLeaf; }
constexpr bool is_none(Kind kind) { return kind == Kind::kNone; }
constexpr bool is_alias(Kind kind) { return kind == Kind::kAlias; }
// Whether nodes of this kind are nothing but their children.
constexpr bool is_plain_sequence(Kind kind) { return kind == Kind::kTuple || kind == Kind::kList; }
// Whether it takes a function of the user's to open and to build nodes of this kind.
constexpr bool is_callback(Kind kind) { return kind == Kind::kCustom; }
// Whether nodes of this kind keep a registration.
constexpr bool is_registered(Kind kind) {
    constexpr KindSet kinds([](const KindTraits &row) { return row.roles[0] == Role::kRegistration; });
    return kinds.has(kind);
}
// Whether nodes of this kind may be of one class or of another.
constexpr bool has_many_classes(Kind kind) { return is_registered(kind) || traits(kind).roles[0] == Role::kClass; }
// Whether `is` means something for nodes of this kind; of registered classes it depends on the registration.
constexpr bool may_have_identity(Kind kind) {
    constexpr KindSet kinds([](const KindTraits &row) { return row.has_identity; });
    return kinds.has(kind);
}

// Where among the references of a node of this kind that with a role stands; kMostRefs if it has none.
constexpr size_t find_role(Kind kind, Role role) {
    return static_cast<size_t>(std::find(traits(kind).roles, traits(kind).roles + kMostRefs, role) -
                               traits(kind).roles);
}

namespace detail {
inline constexpr std::array<uint8_t, kNumKinds> kNumRefs = [] {
    std::array<uint8_t, kNumKinds> numbers{};
    for (size_t i = 0; i < kNumKinds; ++i)
        numbers[i] = static_cast<uint8_t>(find_role(static_cast<Kind>(i), Role::kNothing));
    return numbers;
}();
}  // namespace detail
constexpr uint32_t num_refs(Kind kind) { return detail::kNumRefs[static_cast<size_t>(kind)]; }

}  // namespace pydag
