// SPDX-License-Identifier: BSL-1.0
// A predicate of the user, called by a wait for a condition or a watch. An exception of
// the predicate ends the wait with errc::predicate_failed; a coroutine that awaits with
// use_awaitable is thrown the exception itself.
//
// Invariant: calling a guarded_predicate does not throw; a state calls it where no
// exception may escape.
#pragma once

#include <turnstile/detail/wait/waiter.hpp>

#include <exception>
#include <utility>

namespace turnstile::inline v0_1::detail {

template <class Predicate>
class guarded_predicate {
public:
    explicit guarded_predicate(Predicate predicate) : predicate_(std::move(predicate)) {}

    // Stores an exception of the predicate in `thrown`, which must outlive the wait.
    void keep_exception_in(std::exception_ptr& thrown) noexcept { thrown_ = &thrown; }

    // Granted if the predicate returns true, pending if it returns false.
    template <class... Args>
    wait_decision operator()(const Args&... args) noexcept
    {
        try {
            return predicate_(args...) ? wait_decision::granted() : wait_decision::pending();
        } catch (...) {
            if (thrown_)
                *thrown_ = std::current_exception();
            return wait_decision::refused(errc::predicate_failed);
        }
    }

private:
    std::exception_ptr* thrown_ = nullptr;
    [[no_unique_address]] Predicate predicate_;
};

} // namespace turnstile::inline v0_1::detail
