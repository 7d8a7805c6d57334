// SPDX-License-Identifier: BSL-1.0
#include <turnstile/detail/post/strand_lease.hpp>

namespace turnstile::inline v0_1::detail {

template <class Inner>
asio::execution_context::id strand_cache<Inner>::id;

template class strand_cache<io_executor>;
template class strand_cache<pool_executor>;

namespace {

template <class Inner>
const asio::strand<Inner>* strand_in(const asio::any_io_executor& executor) noexcept
{
    return executor.target<asio::strand<Inner>>();
}

template <class Inner>
strand_cache<Inner>& cache_of(const Inner& inner)
{
    return asio::use_service<strand_cache<Inner>>(inner.context());
}

} // namespace

strand_lease<asio::any_io_executor>::strand_lease(const executor_type& executor)
{
    if (const auto* io = executor.target<io_executor>()) {
        kind_ = kind::io;
        strand_ = cache_of(*io).take(*io);
    } else if (const auto* pool = executor.target<pool_executor>()) {
        kind_ = kind::pool;
        strand_ = cache_of(*pool).take(*pool);
    } else if (strand_in<io_executor>(executor) || strand_in<pool_executor>(executor) ||
               strand_in<asio::any_io_executor>(executor)) {
        strand_ = executor;
    } else {
        strand_ = asio::strand<asio::any_io_executor>(executor);
    }
}

bool strand_lease<asio::any_io_executor>::is_current() const noexcept
{
    if (const auto* io = strand_in<io_executor>(strand_))
        return io->running_in_this_thread();
    if (const auto* pool = strand_in<pool_executor>(strand_))
        return pool->running_in_this_thread();
    return strand_in<asio::any_io_executor>(strand_)->running_in_this_thread();
}

void strand_lease<asio::any_io_executor>::give_back() noexcept
{
    if (kind_ == kind::io) {
        const auto& strand = *strand_in<io_executor>(strand_);
        cache_of(strand.get_inner_executor()).give_back(strand);
    } else if (kind_ == kind::pool) {
        const auto& strand = *strand_in<pool_executor>(strand_);
        cache_of(strand.get_inner_executor()).give_back(strand);
    }
}

} // namespace turnstile::inline v0_1::detail
