// SPDX-License-Identifier: BSL-1.0
// The parts of a subject of the contract, for test/contract/subjects/<primitive>.hpp. To add a
// primitive: write its subjects there, and beside it a .cpp with
// ENROLL_SUBJECTS(<primitive>_subjects).
//
// A subject is made so that an operation started on it has to wait:
//   async_op(token), async_op()   the operation, also with its default token
//   grant()                       completes one wait (or all, if it is a broadcast)
//   consume(values...)            takes the result of a completed operation, so that the next one
//                                 waits again
//   available()                   the number of stored grants
//   try_op()                      the operation without waiting; left out if there is none
//   after_error(ec)               called in the handler of each operation that completes with an
//                                 error; does nothing by default
//   object, destroy()             the object, from subject_base
//
// These constants say how it differs from a semaphore. The values in brackets are those of
// subject_traits, the base of subject_base:
//   is_broadcast [false]     a grant completes all waits
//   is_spent [false]         such a grant does not remain for later operations
//   keeps_grants [true]      a grant without a waiter is stored; a notification is not
//   capacity [1]             the number of grants that can be stored
//   max_waiters [no limit]   the number of operations that may wait at a time
//   is_reusable [true]       a grant and a completion may be followed by another grant
//   order_is_fifo [true]     waits complete in the order of their start
//   order_is_strict [true]   a waiter is also served before operations that are started while it is
//                            delivered; not if each operation has an object of its own, or may test
//                            its condition and wait again
//   rebinds_executor [true]  the object has rebind_executor
//   exempt_from [none]       the names of properties that do not apply, with a comment that says
//   why
//
// For instance:
//   shared_mutex lock_shared, latch, counter   is_broadcast; grant() may be repeated
//   shared_mutex upgrade                       max_waiters = 1
//   condition                                  keeps_grants = false, after_error unlocks
//   barrier, condition with notify_all         is_broadcast, is_spent, keeps_grants = false
//   queue                                      the defaults; pop: grant() pushes, push: grant()
//   pops watch                                      is_broadcast, is_spent oneshot max_waiters = 1,
//   is_reusable = false rate_limiter                               grant() moves the clock;
//   exempt_from the sweep if it
//                                              needs a real timer, and with it an io_context
#pragma once

#include "contract/subject.hpp"

#include <turnstile/core/default_token.hpp>
#include <turnstile/core/threading.hpp>

#include <array>
#include <cstddef>
#include <limits>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>

namespace contract {

using turnstile::strand_confined;
using turnstile::thread_safe;

// The default values.
struct subject_traits {
    static constexpr bool is_broadcast = false;
    static constexpr bool is_spent = false;
    static constexpr bool keeps_grants = true;
    static constexpr std::size_t capacity = 1;
    static constexpr std::size_t max_waiters = std::numeric_limits<std::size_t>::max();
    static constexpr bool is_reusable = true;
    static constexpr bool order_is_fifo = true;
    static constexpr bool order_is_strict = true;
    static constexpr bool rebinds_executor = true;
    static constexpr std::array<std::string_view, 0> exempt_from{};

    void after_error(error_code) {}
};

template <class Object>
struct subject_base : subject_traits {
    using object_type = Object;
    using threading = typename Object::threading_policy;
    static constexpr bool is_confined = threading::is_confined;

    template <class... Args>
    explicit subject_base(const asio::any_io_executor& executor, Args... args)
        : object(std::make_unique<Object>(executor, args...))
    {
    }

    void destroy() { object.reset(); }

    std::unique_ptr<Object> object;
};

} // namespace contract
