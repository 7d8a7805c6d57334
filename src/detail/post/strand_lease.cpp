// SPDX-License-Identifier: BSL-1.0
#include <turnstile/detail/post/strand_lease.hpp>

namespace turnstile::inline v0_1::detail {
namespace {

template <class... Strands>
bool is_one_of(const asio::any_io_executor& executor) noexcept
{
    return (executor.target<Strands>() || ...);
}

template <class... Strands>
bool is_running_in(const asio::any_io_executor& executor) noexcept
{
    const auto runs = [](const auto* strand) { return strand && strand->running_in_this_thread(); };
    return (runs(executor.target<Strands>()) || ...);
}

} // namespace

template <class Inner>
bool strand_lease<asio::any_io_executor>::take_serial(const executor_type& executor)
{
    const Inner* inner = executor.target<Inner>();
    if (!inner)
        return false;
    service_ = &asio::use_service<serial_service>(inner->context());
    serial_queue::pointer queue = service_->take(*inner);
    queue_ = queue.get();
    strand_ = serial_executor<Inner>(std::move(queue));
    return true;
}

strand_lease<asio::any_io_executor>::strand_lease(const executor_type& executor)
    : work_(posting_executor(executor).track())
{
    if (take_serial<io_executor>(executor) || take_serial<pool_executor>(executor))
        return;
    const bool is_strand = is_one_of<serial_executor<io_executor>, serial_executor<pool_executor>,
                                     asio::strand<io_executor>, asio::strand<pool_executor>,
                                     asio::strand<asio::any_io_executor>>(executor);
    strand_ = is_strand ? executor : executor_type(asio::strand<executor_type>(executor));
}

strand_lease<asio::any_io_executor>::~strand_lease()
{
    if (queue_)
        service_->give_back(queue_);
}

bool strand_lease<asio::any_io_executor>::is_current() const noexcept
{
    if (queue_)
        return queue_->is_current();
    return is_running_in<serial_executor<io_executor>, serial_executor<pool_executor>,
                         asio::strand<io_executor>, asio::strand<pool_executor>,
                         asio::strand<asio::any_io_executor>>(strand_);
}

} // namespace turnstile::inline v0_1::detail
