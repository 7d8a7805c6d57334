// SPDX-License-Identifier: BSL-1.0
#include <turnstile/detail/call/handler_loan.hpp>

#include <cstdint>
#include <mutex>

namespace turnstile::inline v0_1::detail {
namespace {

constexpr std::size_t cache_line = 64;
constexpr std::size_t mutex_count = 64; // so that two loans seldom use the same mutex

struct alignas(cache_line) loan_mutex : spin_mutex {};

// Chosen by the address of the block, which is known even after the block was freed.
loan_mutex& mutex_of(const loan_block* block) noexcept
{
    static constinit loan_mutex mutexes[mutex_count];
    return mutexes[reinterpret_cast<std::uintptr_t>(block) / cache_line % mutex_count];
}

} // namespace

loan_state loan_lender::detach(loan_block& block) noexcept
{
    loan_state state = state_.load(std::memory_order_acquire);
    if (state != loan_state::lent)
        return state;
    const std::lock_guard lock(mutex_of(&block));
    state = state_.load(std::memory_order_relaxed);
    if (state == loan_state::lent) // under the mutex: the block still exists
        block.lender_.store(nullptr, std::memory_order_release);
    return state;
}

bool loan_block::notify_lender(loan_state state) noexcept
{
    const std::lock_guard lock(mutex_of(this));
    loan_lender* lender = lender_.load(std::memory_order_relaxed);
    if (!lender)
        return false;
    if (state == loan_state::called)
        lender->caller_ = std::this_thread::get_id();
    lender->state_.store(state, std::memory_order_release); // the lender may detach after this
    return true;
}

} // namespace turnstile::inline v0_1::detail
