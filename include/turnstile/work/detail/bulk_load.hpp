// SPDX-License-Identifier: BSL-1.0
// One operation that loads several keys of a cache: cache::async_get_all. Each key has a flight of
// its own, a bulk_flight, so that it can have other callers, too; the flights share a bulk_load.
//
// The operation starts when it is sealed, which says that all its flights are known, and when a
// caller of one of them has requested the start; the one that comes last starts it. It is cancelled
// when all its flights are.
//
// Invariant: flights_ has the flights that may need an outcome. They and the bulk_load own each
// other until the operation has ended, or the flight was discarded.
#pragma once

#include <turnstile/detail/call/child_operation.hpp>
#include <turnstile/detail/post/posting_executor.hpp>
#include <turnstile/detail/post/strand_lease.hpp>
#include <turnstile/detail/util/block_cache.hpp>
#include <turnstile/work/detail/flight.hpp>
#include <turnstile/work/detail/task_group_state.hpp>

#include <boost/asio/error.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>

#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>

namespace turnstile::inline v0_1::detail {

template <class Load>
class bulk_flight final : public load_flight<typename Load::cell_type, typename Load::threading> {
    using base = load_flight<typename Load::cell_type, typename Load::threading>;

public:
    bulk_flight(std::size_t h, std::shared_ptr<typename Load::cell_type> c,
                boost::intrusive_ptr<Load> load) noexcept
        : base(h, std::move(c)), load_(std::move(load))
    {
    }

private:
    friend Load;
    void launch() noexcept override { load_->request(); }
    void emit() noexcept override { load_->cancel_one(); }
    bool post_to_strand() noexcept override { return load_->post(*this); }
    void give_back_strand() noexcept override {}
    void discard(bool is_aborted) noexcept override
    {
        this->fail_as_aborted(is_aborted);
        load_->forget(*this);
    }

    const boost::intrusive_ptr<Load> load_;
};

// Whether the loader, called with a vector of keys, returns an operation whose result is a range.
template <class Loader, class Key>
concept bulk_loader = std::invocable < Loader&,
        const std::vector<Key>
& > &&work_operation<std::invoke_result_t<Loader&, const std::vector<Key>&>>&&
        std::ranges::input_range<typename child_operation<operation_signature_t<
            operation_of<std::invoke_result_t<Loader&, const std::vector<Key>&>>>>::value_type>;

// Cache is the state of the cache. Loader is called with a vector of keys, and returns an operation
// whose result is a range of pairs of a key and a value.
template <class Cache, class Loader, class Executor, class Threading>
class bulk_load : public boost::intrusive_ref_counter<bulk_load<Cache, Loader, Executor, Threading>,
                                                      boost::thread_safe_counter> {
    using self_ptr = boost::intrusive_ptr<bulk_load>;
    using key_type = typename Cache::key_type;
    using keys_type = std::vector<key_type>;
    using op_type = operation_of<std::invoke_result_t<Loader&, const keys_type&>>;
    using signature = operation_signature_t<op_type>;

public:
    using cell_type = typename Cache::entry;
    using threading = Threading;
    using flight_type = bulk_flight<bulk_load>;

    bulk_load(const Executor& executor, Cache& cache, Loader&& loader)
        : cache_(&cache), lease_(std::in_place, executor), loader_(std::in_place, std::move(loader))
    {
    }

    // Before seal(): adds a key with its flight. reserve() first, so that nothing can fail.
    void reserve(std::size_t n)
    {
        keys_.reserve(n);
        flights_.reserve(n);
    }
    boost::intrusive_ptr<flight_type> add(const key_type& key, std::size_t hash)
    {
        boost::intrusive_ptr<flight_type> f(
            new flight_type(hash, std::make_shared<cell_type>(hash, key), self_ptr(this)));
        keys_.push_back(key);
        const std::scoped_lock lock(mutex_);
        flights_.push_back(f);
        return f;
    }
    // The flight needs no outcome.
    void forget(flight_type& f) noexcept
    {
        boost::intrusive_ptr<flight_type> forgotten; // keeps the caller, which keeps this object
        guarded([&] {
            const auto it = std::find(flights_.begin(), flights_.end(), &f);
            if (it == flights_.end())
                return;
            it->swap(forgotten);
            flights_.erase(it);
        });
    }
    void seal() noexcept { mark(sealed); }
    void request() noexcept { mark(requested); }

    // For start_child().
    const policy_lease<Executor, Threading>& lease() const noexcept { return *lease_; }
    cached_allocator<void> get_allocator() const noexcept { return {}; }
    void complete(child_operation<signature>& child) noexcept
    {
        const flights_type flights = take_flights();
        std::exception_ptr failed;
        try {
            failed = child.exception();
            if (!failed)
                distribute(child.take_value(), flights);
        } catch (...) {
            failed = std::current_exception();
        }
        end(flights, failed);
    }
    void drop(child_operation<signature>&) noexcept { end(take_flights(), aborted_child()); }

private:
    friend flight_type;
    using flights_type = std::vector<boost::intrusive_ptr<flight_type>>;
    enum : unsigned { sealed = 1, requested = 2 };

    void mark(unsigned bit) noexcept
    {
        const unsigned before = marks_.fetch_or(bit, std::memory_order_acq_rel);
        if (before != (before | bit) && (before | bit) == (sealed | requested))
            start();
    }
    void start() noexcept
    {
        const self_ptr self(this);
        std::optional<op_type> op;
        std::exception_ptr thrown;
        try {
            op.emplace(as_operation(std::invoke(*loader_, std::as_const(keys_))));
        } catch (...) {
            thrown = std::current_exception();
        }
        if (op)
            start_child(op, self, child_);
        else
            end(take_flights(), thrown);
    }
    void cancel_one() noexcept
    {
        const std::size_t all = guarded([&] { return flights_.size(); });
        if (++cancelled_ < all || all == 0)
            return;
        try {
            child_.cancel(asio::cancellation_type::terminal);
        } catch (...) { // the operation continues
        }
    }
    bool post(intrusive_task& task) noexcept
    {
        return posting_executor(lease_->executor()).post(task);
    }

    template <class F>
    auto guarded(F f) noexcept
    {
        const std::scoped_lock lock(mutex_);
        return f();
    }
    flights_type take_flights() noexcept
    {
        return guarded([&] { return std::exchange(flights_, {}); });
    }
    // Each value to the flight of its key; a value of another key is dropped.
    template <class Range>
    void distribute(Range&& range, const flights_type& flights)
    {
        for (auto&& [key, value] : range) {
            for (const auto& f : flights) {
                cell_type& cell = *f->cell;
                if (!cell.value && cache_->equal()(cell.key, key)) {
                    cell.value.emplace(std::move(value));
                    break;
                }
            }
        }
    }
    void end(const flights_type& flights, std::exception_ptr failed) noexcept
    {
        if (flights.empty())
            return;
        const boost::intrusive_ptr<Cache> keep_alive(cache_); // one of the flights runs
        if (!failed)
            failed = not_found();
        for (const auto& f : flights) {
            if (!f->cell->value)
                f->cell->error = failed;
            cache_->end_flight(*f, f->cell->value.has_value(), false);
        }
    }
    static std::exception_ptr not_found() noexcept
    {
        try {
            throw system_error(asio::error::not_found);
        } catch (...) {
            return std::current_exception();
        }
    }

    Cache* cache_; // exists while a flight runs
    std::optional<policy_lease<Executor, Threading>> lease_;
    std::optional<Loader> loader_;
    keys_type keys_;
    typename Threading::mutex_type mutex_;
    flights_type flights_;      // guarded by mutex_
    std::size_t cancelled_ = 0; // on the strand
    std::atomic<unsigned> marks_{0};
    child_operation<signature> child_;
};

} // namespace turnstile::inline v0_1::detail
