// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/detail/wait/wait_decision.hpp>

#include <exception>
#include <utility>

namespace turnstile::inline v0_1::detail {

// A user's predicate. What it throws ends the wait it is for, with errc::predicate_failed; a
// coroutine is thrown that exception instead.
template <class Predicate>
class guarded_predicate {
public:
    explicit guarded_predicate(Predicate predicate) : predicate_(std::move(predicate)) {}

    // Where its exception goes, if anybody wants it.
    void keep_exception_in(std::exception_ptr& thrown) noexcept { thrown_ = &thrown; }

    // Granted if it says yes; if it says no, the wait goes on.
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
