// SPDX-License-Identifier: Apache-2.0
//
// Memory that ends for the core alone: preloaded into an interpreter, it lets the allocations fail that
// the core's own code asks for, itself or through C++'s library. Python's own go on.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

enum { kMostRanges = 8 };
static struct {
    const char *first, *last;
} ranges[kMostRanges];  // of the code whose allocations may fail
static int num_ranges;
static long left = -1;  // how many allocations succeed before one fails; -1: all do
static int only_one;

static int add_ranges(struct dl_phdr_info *library, size_t size, void *unused) {
    (void)size, (void)unused;
    if (!strstr(library->dlpi_name, "/pydag/_core.") && !strstr(library->dlpi_name, "libstdc++")) return 0;
    for (int i = 0; i < library->dlpi_phnum && num_ranges < kMostRanges; ++i) {
        const ElfW(Phdr) *const part = &library->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
        ranges[num_ranges].first = (const char *)library->dlpi_addr + part->p_vaddr;
        ranges[num_ranges++].last = (const char *)library->dlpi_addr + part->p_vaddr + part->p_memsz;
    }
    return 0;
}

// To be called once the core is loaded.
void find_core(void) { dl_iterate_phdr(add_ranges, NULL); }

// The allocation after `after` others fails, and, unless `only_one`, each further one.
void fail_after(long after, int one) { left = after, only_one = one; }
void fail_never(void) { left = -1; }

static int fails(const char *caller) {
    int is_core = 0;
    for (int i = 0; left >= 0 && i < num_ranges; ++i)
        is_core |= caller >= ranges[i].first && caller < ranges[i].last;
    if (!is_core) return 0;
    if (left > 0) {
        --left;
        return 0;
    }
    if (only_one) left = -1;
    errno = ENOMEM;
    return 1;
}

#define NEXT(name) dlsym(RTLD_NEXT, name)

void *malloc(size_t size) {
    static void *(*next)(size_t);
    if (!next) next = NEXT("malloc");
    return fails(__builtin_return_address(0)) ? NULL : next(size);
}

void *realloc(void *memory, size_t size) {
    static void *(*next)(void *, size_t);
    if (!next) next = NEXT("realloc");
    return fails(__builtin_return_address(0)) ? NULL : next(memory, size);
}
