// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/detail/wait/wait_outcome.hpp>

#include <concepts>

namespace turnstile::detail {

// An Ask whose outcome is only known at the moment of delivery, and may then still be an
// error of any kind: instead of take() and take_now() it has conclude() and conclude_now().
template <class Request>
concept concluding_request = requires(Request& request, typename Request::waiter_type& w)
{
    requires std::same_as<decltype(request.conclude(w)), wait_outcome<typename Request::result_type>>;
    requires std::same_as<decltype(request.conclude_now()), wait_outcome<typename Request::result_type>>;
};

} // namespace turnstile::detail
