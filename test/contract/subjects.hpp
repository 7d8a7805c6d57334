// SPDX-License-Identifier: BSL-1.0
// What a subject of the contract is made of, for test/contract/subjects/<primitive>.hpp. To
// add a primitive: write its subjects there, and beside it a .cpp with
// ENROLL_SUBJECTS(<primitive>_subjects).
//
// A subject is made so that an operation started now has to wait:
//   async_op(token), async_op()   the operation, also with its default token
//   grant()                       lets one go (or all, if it is a broadcast)
//   consume(values...)            takes what a completed operation was given, so that the next
//                                 one waits again
//   available()                   how many grants are stored
//   try_op()                      the operation, if it need not wait; leave it out if there
//                                 is no such thing
//   after_error(ec)               called in the handler of whatever completes with an error;
//                                 nothing to do by default
//   object, destroy()             the object, from subject_base
//
// and says by these how it differs from a semaphore; the values in brackets are those of
// subject_traits, the base of subject_base:
//   is_broadcast [false]     a grant lets everybody go who waits
//   is_spent [false]         a broadcast is over with that; otherwise it stays granted
//   keeps_grants [true]      a grant while nobody waits is stored; not so with a notification
//   capacity [1]             how many grants can be stored
//   max_waiters [no limit]   how many operations may wait at a time
//   is_reusable [true]       there can be a grant, a completion, and another grant
//   order_is_fifo [true]     who came first goes first
//   order_is_strict [true]   also before those who come while it goes; not if each operation has
//                            an object of its own, or may look and wait again
//   rebinds_executor [true]  the object has rebind_executor
//   exempt_from [none]       names of properties that make no sense for it: say why
//
// For instance:
//   shared_mutex lock_shared, latch, counter   is_broadcast, and grant() harmless if repeated
//   shared_mutex upgrade                       max_waiters = 1
//   condition                                  keeps_grants = false, after_error unlocks
//   barrier, condition with notify_all         is_broadcast, is_spent, keeps_grants = false
//   queue                                      as it is; pop: grant() pushes, push: grant() pops
//   watch                                      is_broadcast, is_spent
//   oneshot                                    max_waiters = 1, is_reusable = false
//   rate_limiter                               grant() moves the clock; exempt_from the sweep
//                                              if it needs a real timer: those need an
//                                              io_context
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

// What holds unless a subject says otherwise.
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
