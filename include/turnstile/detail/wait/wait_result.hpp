// SPDX-License-Identifier: BSL-1.0
// Makes the result of a wait from its request and its waiter. wait_outcome_of() makes it for a
// completion handler; wait_result stores it in the frame of a coroutine, from the end of the
// operation until the coroutine resumes. Both are used by start_wait().
//
// Invariant: a coroutine that is destroyed before it resumes destroys its wait_result, which gives
// back everything that was granted.
#pragma once

#include <turnstile/detail/wait/wait_request.hpp>

#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

// The result of a granted waiter; for a concluding request, its outcome.
template <class Request>
auto grant_of(Request& request, [[maybe_unused]] typename Request::waiter_type& w)
{
    if constexpr (concluding_request<Request>)
        return request.conclude(w);
    else if constexpr (std::is_void_v<typename Request::result_type>)
        return;
    else if constexpr (Request::traits.result == result_source::waiter)
        return request.take(w);
    else
        return request.take_now();
}

// The outcome of a waiter, whether it was granted or not.
template <class Request>
wait_outcome<typename Request::result_type>
wait_outcome_of(Request& request, typename Request::waiter_type& w, bool granted)
{
    wait_outcome<typename Request::result_type> result;
    if (!granted)
        result.error = w.error();
    else if constexpr (concluding_request<Request>)
        result = grant_of(request, w);
    else if constexpr (!std::is_void_v<typename Request::result_type>)
        result.value = grant_of(request, w);
    return result;
}

template <class Request,
          class Grant = decltype(grant_of(std::declval<Request&>(),
                                          std::declval<typename Request::waiter_type&>()))>
class wait_result {
public:
    // The decision before the operation starts: pending, or unattempted.
    explicit wait_result(wait_decision decision) noexcept : decision_(decision) {}
    wait_result(const wait_result&) = delete;
    wait_result& operator=(const wait_result&) = delete;
    ~wait_result()
    {
        if (decision_.is_granted()) [[likely]]
            std::destroy_at(&grant_);
    }

    wait_decision decision() const noexcept { return decision_; }
    Grant&& take() noexcept { return std::move(grant_); } // precondition: granted

    void conclude(Request& request, typename Request::waiter_type& w, bool granted)
    {
        if (granted) [[likely]] {
            ::new (static_cast<void*>(std::addressof(grant_))) Grant(grant_of(request, w));
            decision_ = wait_decision::granted();
        } else {
            decision_ = w.decision();
        }
    }

private:
    wait_decision decision_;
    union {
        Grant grant_;
    };
};

template <class Request>
class wait_result<Request, void> {
public:
    explicit wait_result(wait_decision decision) noexcept : decision_(decision) {}

    wait_decision decision() const noexcept { return decision_; }
    void conclude(Request&, typename Request::waiter_type& w, bool) noexcept
    {
        decision_ = w.decision();
    }

private:
    wait_decision decision_;
};

} // namespace turnstile::inline v0_1::detail
