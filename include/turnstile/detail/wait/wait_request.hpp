// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/detail/wait/wait_outcome.hpp>

#include <concepts>

namespace turnstile::detail {

// An Ask whose outcome is only known at the moment of delivery, and may then still be an
// error of any kind: instead of take() and take_now() it has conclude() and conclude_now().
template <class Ask>
concept concluding_ask = requires(Ask& ask, typename Ask::waiter_type& w)
{
    requires std::same_as<decltype(ask.conclude(w)), outcome<typename Ask::result_type>>;
    requires std::same_as<decltype(ask.conclude_now()), outcome<typename Ask::result_type>>;
};

} // namespace turnstile::detail
