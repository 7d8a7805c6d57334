// SPDX-License-Identifier: BSL-1.0
// A resource is acquired and returned: from a resource_pool, and from a pool by hand, of a channel
// with a token for each resource, and a deque of resources behind a mutex. Uncontended, and 10
// resources among 100 coroutines that yield while they have one.
#include "support/enroll.hpp"
#include "support/gates.hpp"
#include "support/workloads.hpp"

#include <turnstile/work/resource_pool.hpp>

#include <boost/asio.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <utility>

namespace bench {
namespace {

struct connection {
    int number;
};

asio::awaitable<connection> connect() { co_return connection{0}; }

// With a check the time is read for each acquisition and each return; no check is due.
template <template <class> class Pool, bool IsChecked = false>
class turnstile_pool {
public:
    turnstile_pool(asio::io_context& context, std::size_t size)
        : pool_(context, {.max_size = size}, operations())
    {
        for (std::size_t i = 0; i != size; ++i)
            static_cast<void>(pool_.try_add(connection{static_cast<int>(i)}));
    }
    auto acquire() { return pool_.async_acquire(asio::use_awaitable); }

private:
    static turnstile::resource_operations<connection> operations()
    {
        turnstile::resource_operations<connection> all{.create = connect};
        if constexpr (IsChecked)
            all.check = [](connection&) -> asio::awaitable<bool> { co_return true; };
        return all;
    }

    Pool<connection> pool_;
};

template <class Channel>
class pool_by_hand {
public:
    pool_by_hand(asio::io_context& context, std::size_t size) : tokens_(context, size)
    {
        for (std::size_t i = 0; i != size; ++i) {
            idle_.push_back({static_cast<int>(i)});
            tokens_.try_send(error_code());
        }
    }

    class lease {
    public:
        lease(pool_by_hand& pool, connection c) noexcept : pool_(&pool), connection_(c) {}
        lease(lease&& other) noexcept
            : pool_(std::exchange(other.pool_, nullptr)), connection_(other.connection_)
        {
        }
        lease& operator=(lease&&) = delete;
        ~lease()
        {
            if (pool_)
                pool_->give_back(connection_);
        }

    private:
        pool_by_hand* pool_;
        connection connection_;
    };

    asio::awaitable<lease> acquire()
    {
        co_await tokens_.async_receive(asio::use_awaitable);
        const std::scoped_lock lock(mutex_);
        const connection c = idle_.back();
        idle_.pop_back();
        co_return lease(*this, c);
    }

private:
    void give_back(connection c)
    {
        {
            const std::scoped_lock lock(mutex_);
            idle_.push_back(c);
        }
        tokens_.try_send(error_code());
    }

    Channel tokens_;
    std::mutex mutex_;
    std::deque<connection> idle_;
};

template <class Pool>
bool one_after_the_other(meter& m)
{
    return uncontended<Pool>(m, 50'000, 10);
}

template <class Pool, class Int = std::int64_t>
void enroll_crowd(const std::string& name, int threads = 1)
{
    const crowd size{.permits = 10, .times = 500, .threads = threads};
    enroll(
        name, [=](meter& m) { return contended<Pool, Int>(m, size); }, threads);
}

[[maybe_unused]] const bool enrolled = [] {
    using ours = turnstile_pool<turnstile::resource_pool>;
    using local = turnstile_pool<turnstile::local::resource_pool>;
    enroll("pool/ours", one_after_the_other<ours>);
    enroll("pool/local", one_after_the_other<local>);
    enroll("pool/channel", one_after_the_other<pool_by_hand<channel>>);
    enroll("pool/by_hand", one_after_the_other<pool_by_hand<concurrent_channel>>);
    enroll("pool_checked/ours",
           one_after_the_other<turnstile_pool<turnstile::resource_pool, true>>);
    enroll_crowd<ours>("pool_contended/ours");
    enroll_crowd<local>("pool_contended/local");
    enroll_crowd<pool_by_hand<channel>>("pool_contended/channel");
    enroll_crowd<pool_by_hand<concurrent_channel>>("pool_contended/by_hand");

    using shared = std::atomic<std::int64_t>;
    enroll_crowd<ours, shared>("pool_contended_2_threads/ours", 2);
    enroll_crowd<pool_by_hand<concurrent_channel>, shared>("pool_contended_2_threads/by_hand", 2);
    return true;
}();

} // namespace
} // namespace bench
