// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/detail/wait/wait_request.hpp>

#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

// What a waiter was granted, or for a concluding Ask its outcome.
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

// What a waiter was granted, or why it was not.
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

// How the wait of a coroutine has ended. What it was granted is here from the moment the operation
// ends until the coroutine takes it: one that is destroyed in between gives it back by that.
template <class Request,
          class Grant = decltype(grant_of(std::declval<Request&>(),
                                          std::declval<typename Request::waiter_type&>()))>
class wait_result {
public:
    // With what a first look has said, if there was one: that it must wait.
    explicit wait_result(wait_decision decision) noexcept : decision_(decision) {}
    wait_result(const wait_result&) = delete;
    wait_result& operator=(const wait_result&) = delete;
    ~wait_result()
    {
        if (decision_.is_granted()) [[likely]]
            std::destroy_at(&grant_);
    }

    wait_decision decision() const noexcept { return decision_; }
    Grant&& take() noexcept { return std::move(grant_); } // only if it was granted

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
