// SPDX-License-Identifier: Apache-2.0
//
// Growable arrays for the scratch memory of one call. The first elements are on the C stack, so that a small tree costs
// no allocation.
#pragma once

#include "base/capi.h"
#include "base/memory.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace pydag {

template <class T, size_t kInline>
class Buffer {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    Buffer() { poison(storage_, sizeof storage_); }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
    ~Buffer() {
        if (data_ != inline_data()) std::free(data_);
    }

    size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    T *data() { return data_; }
    const T *data() const { return data_; }
    T &operator[](size_t i) { return data_[i]; }
    const T &operator[](size_t i) const { return data_[i]; }
    T &back() { return data_[size_ - 1]; }

    void push(T value) {
        if (size_ == capacity_) [[unlikely]]
            reserve(1);
        data_[size_++] = value;
    }
    // For a buffer that has the room: nothing is checked.
    void push_reserved(T value) { data_[size_++] = value; }
    T pop() { return data_[--size_]; }

    // Makes room for `count` more elements.
    void reserve(size_t count) {
        if (capacity_ - size_ >= count) return;
        const size_t capacity = std::max(capacity_ * 2, size_ + count);
        data_ = on_the_heap(capacity * sizeof(T));
        capacity_ = capacity;
    }
    // Grows by `count` elements that the caller writes next; returns the first of them.
    T *extend(size_t count) {
        reserve(count);
        T *first = data_ + size_;
        size_ += count;
        poison(first, count * sizeof(T));
        return first;
    }
    // Grows by `count` elements that the caller has written already, for which there was room.
    void add_written(size_t count) { size_ += count; }
    void resize_down(size_t size) { size_ = size; }
    // Gives the caller a block of `bytes` bytes, which begins with the elements and must be freed. Empties the buffer.
    T *hand_over(size_t bytes) {
        T *const data = on_the_heap(bytes);
        data_ = inline_data();
        size_ = 0, capacity_ = kInline;
        return data;
    }

private:
    T *inline_data() { return reinterpret_cast<T *>(storage_); }
    // Moves the elements into a block on the heap.
    T *on_the_heap(size_t bytes) {
        const bool moves_out = data_ == inline_data();
        T *const data = static_cast<T *>(std::realloc(moves_out ? nullptr : data_, bytes));
        if (!data) throw std::bad_alloc();
        ask_for_large_pages(data, bytes);
        if (moves_out) std::memcpy(static_cast<void *>(data), data_, size_ * sizeof(T));
        return data;
    }

    alignas(T) unsigned char storage_[kInline * sizeof(T)];
    T *data_ = reinterpret_cast<T *>(storage_);
    size_t size_ = 0, capacity_ = kInline;
};

// Memory for runs of elements that don't move until the end of a walk.
template <class T, size_t kInline>
class Arena {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    Arena() {}  // not `= default`: that could clear the memory
    Arena(const Arena &) = delete;
    Arena &operator=(const Arena &) = delete;

    T *take(size_t count) {
        if (static_cast<size_t>(end_ - next_) < count) [[unlikely]]
            grow(count);
        poison(next_, count * sizeof(T));
        return std::exchange(next_, next_ + count);
    }
    // Gives back everything from `first` on.
    void give_back(T *first) { next_ = first; }

private:
    void grow(size_t count) {
        size_ = std::max(2 * size_, count);
        chunks_.emplace_back(new T[size_]);  // not written: `make_unique` would
        next_ = chunks_.back().get();
        end_ = next_ + size_;
    }

    T inline_[kInline];
    T *next_ = inline_, *end_ = inline_ + kInline;
    size_t size_ = kInline;  // of the last chunk
    std::vector<std::unique_ptr<T[]>> chunks_;
};

// Owns a reference to each of its objects. It is no subclass of Buffer, whose functions count no references.
template <size_t kInline>
class RefBuffer {
public:
    RefBuffer() = default;
    RefBuffer(const RefBuffer &) = delete;
    RefBuffer &operator=(const RefBuffer &) = delete;
    ~RefBuffer() { drop_to(0); }

    size_t size() const { return objects_.size(); }
    bool empty() const { return objects_.empty(); }
    PyObject **data() { return objects_.data(); }
    PyObject *const *data() const { return objects_.data(); }
    PyObject *operator[](size_t i) const { return objects_[i]; }
    PyObject *back() const { return objects_[size() - 1]; }

    void reserve(size_t count) { objects_.reserve(count); }
    // Grows by `count` items. The caller must write an owned reference into each before anything can raise.
    PyObject **extend(size_t count) { return objects_.extend(count); }
    void add_written(size_t count) { objects_.add_written(count); }
    void push_reserved(PyObject *object) { objects_.push_reserved(object); }
    void push_new(nb::object object) { objects_.push(object.ptr()), object.release(); }
    void push_borrowed(PyObject *object) { objects_.push(incref(object)); }
    // Replaces the i-th object. The finalizer of the old one may run here.
    void replace(size_t i, nb::object object) { nb::steal(std::exchange(objects_[i], object.release().ptr())).reset(); }
    nb::object pop_owned() { return nb::steal(objects_.pop()); }
    // Moves the objects from `base` on into a tuple or list. No code runs before it is full, so nobody can see it.
    nb::object take_tuple(size_t base = 0) {
        const size_t count = size() - base;
        nb::object tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(count)));
        if (count) std::memcpy(&PyTuple_GET_ITEM(tuple.ptr(), 0), data() + base, count * sizeof(PyObject *));
        forget_to(base);
        return tuple;
    }
    nb::object take_list(size_t base = 0) {
        const size_t count = size() - base;
        nb::object list = checked(PyList_New(static_cast<Py_ssize_t>(count)));
        PyObject **const items = reinterpret_cast<PyListObject *>(list.ptr())->ob_item;
        ask_for_large_pages(items, count * sizeof(PyObject *));
        if (count) std::memcpy(items, data() + base, count * sizeof(PyObject *));
        forget_to(base);
        return list;
    }
    int traverse(visitproc visit, void *arg) const {
        for (size_t i = 0; i < size(); ++i) Py_VISIT(objects_[i]);
        return 0;
    }
    // Releases the objects from `size` on. An object's finalizer may run here.
    void drop_to(size_t size) {
        while (objects_.size() > size) decref(objects_.pop());
    }
    // Forgets the objects from `size` on: somebody else owns their references now.
    void forget_to(size_t size) { objects_.resize_down(size); }

private:
    Buffer<PyObject *, kInline> objects_;
};

}  // namespace pydag
