// SPDX-License-Identifier: BSL-1.0
// A flight with its types: the key and the outcome (load_flight), the operation that loads
// (operation_flight), and the search for the flight of a key.
//
// The key and the value are in a cell of their own, which the callers share with the flight: the
// value is handed out as a pointer into it. A cache derives its entries from it, so that a loaded
// value is neither copied nor moved when it is stored.
//
// Invariants: the key of a cell does not change. The outcome is written before the flight ends, on
// the strand of the load, and read afterwards.
#pragma once

#include <turnstile/detail/call/child_operation.hpp>
#include <turnstile/detail/post/posting_executor.hpp>
#include <turnstile/detail/post/strand_lease.hpp>
#include <turnstile/detail/util/block_cache.hpp>
#include <turnstile/work/detail/flight_state.hpp>

#include <boost/asio/error.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {

template <class Key, class Value>
struct flight_cell {
    template <class K>
    explicit flight_cell(K&& k) : key(std::forward<K>(k))
    {
    }

    const Key key;
    std::optional<Value> value;
    std::exception_ptr error; // if there is no value
};

// A loader is an operation, or a function that is called with the key and returns one. An operation
// is preferred, because a generic lambda that takes a token can formally be called with a key.
template <class Loader, class Key>
struct loader_operation {
    using type = operation_of<std::invoke_result_t<Loader&, const Key&>>;
    static auto call(Loader&& loader, const Key& key)
    {
        return as_operation(std::invoke(loader, key));
    }
};
template <work_operation Loader, class Key>
struct loader_operation<Loader, Key> {
    using type = operation_of<Loader>;
    static auto call(Loader&& loader, const Key&) { return as_operation(std::move(loader)); }
};

template <class Loader, class Key>
concept keyed_loader = std::invocable<Loader&, const Key&> &&
    work_operation<std::invoke_result_t<Loader&, const Key&>>;

template <class Loader, class Key>
using loader_signature_t =
    operation_signature_t<typename loader_operation<std::decay_t<Loader>, Key>::type>;

// Whether the loader loads values of a type that is convertible to Value.
template <class Loader, class Key, class Value>
concept loader_of = (work_operation<std::decay_t<Loader>> ||
                     keyed_loader<std::decay_t<Loader>, Key>)&&std::
    is_constructible_v<Value,
                       typename child_operation<loader_signature_t<Loader, Key>>::value_type>;

template <class Cell, class Threading>
class load_flight : public flight<Threading> {
public:
    using cell_type = Cell;

    load_flight(std::size_t h, std::shared_ptr<Cell> c) noexcept
        : flight<Threading>(h), cell(std::move(c)), result(cell)
    {
    }

    const std::shared_ptr<Cell> cell;
    // The cell with the outcome for the callers. A cache may replace it by an older one.
    std::shared_ptr<Cell> result;
    std::shared_ptr<Cell> stale; // the older one; it may still be fresh
    // For a cache, from loaded() to settle(): the entry of the key that is replaced, a number above
    // those of all entries that were compared, and whether the failure is stored.
    std::shared_ptr<Cell> replaced;
    std::uint64_t below = 0;
    bool keeps_failure = false;

protected:
    void fail_as_aborted(bool is_aborted) noexcept
    {
        try {
            if (!is_aborted)
                throw std::bad_alloc();
            throw system_error(asio::error::operation_aborted);
        } catch (...) {
            cell->error = std::current_exception();
        }
    }
};

template <class Cell, class Loader, class Executor, class Threading>
class operation_flight final : public load_flight<Cell, Threading> {
    using key_type = std::remove_cvref_t<decltype(Cell::key)>;
    using operation_maker = loader_operation<Loader, key_type>;
    using op_type = typename operation_maker::type;
    using signature = operation_signature_t<op_type>;
    using self_ptr = boost::intrusive_ptr<operation_flight>;

public:
    using state_type = flight_state<Threading>;

    static void* operator new(std::size_t)
    {
        return cached_allocator<operation_flight>().allocate(1);
    }
    static void operator delete(void* memory) noexcept
    {
        cached_allocator<operation_flight>().deallocate(static_cast<operation_flight*>(memory), 1);
    }

    operation_flight(std::size_t h, std::shared_ptr<Cell> c, const Executor& executor,
                     state_type& state, Loader&& loader)
        : load_flight<Cell, Threading>(h, std::move(c)), flights_(&state),
          lease_(std::in_place, executor), loader_(std::in_place, std::move(loader))
    {
    }

    // For start_child().
    const policy_lease<Executor, Threading>& lease() const noexcept { return *lease_; }
    cached_allocator<void> get_allocator() const noexcept { return {}; }
    void complete(child_operation<signature>& child) noexcept
    {
        try {
            this->cell->error = child.exception();
            if (!this->cell->error)
                this->cell->value.emplace(child.take_value());
        } catch (...) {
            this->cell->error = std::current_exception();
        }
        flights_->end_flight(*this, !this->cell->error, true);
    }
    void drop(child_operation<signature>&) noexcept
    {
        this->fail_as_aborted(true);
        flights_->end_flight(*this, false, false);
    }

private:
    void launch() noexcept override
    {
        std::optional<op_type> op;
        try {
            op.emplace(operation_maker::call(std::move(*loader_), this->cell->key));
        } catch (...) {
            this->cell->error = std::current_exception();
        }
        if (op)
            return start_child(op, self_ptr(this), child_);
        loader_.reset();
        flights_->end_flight(*this, false, false);
    }
    void emit() noexcept override
    {
        try {
            child_.cancel(asio::cancellation_type::terminal);
        } catch (...) { // the operation continues
        }
    }
    bool post_to_strand() noexcept override
    {
        return posting_executor(lease_->executor()).post(*this);
    }
    void give_back_strand() noexcept override { lease_.reset(); }
    void discard(bool is_aborted) noexcept override
    {
        loader_.reset();
        this->fail_as_aborted(is_aborted);
    }

    state_type* flights_;                                    // exists while the load runs
    std::optional<policy_lease<Executor, Threading>> lease_; // until the load has ended
    std::optional<Loader> loader_;
    child_operation<signature> child_;
};

// A pin of a flight, which its caller holds. A copy holds none.
template <class Threading>
class flight_pin {
public:
    using state_type = flight_state<Threading>;

    flight_pin() noexcept = default;
    flight_pin(state_type& state, flight_ptr<Threading> f) noexcept
        : state_(&state), flight_(std::move(f))
    {
    }
    flight_pin(flight_pin&& other) noexcept
        : state_(other.state_), flight_(std::move(other.flight_))
    {
    }
    flight_pin(const flight_pin&) noexcept {}
    flight_pin& operator=(flight_pin&& other) noexcept
    {
        std::swap(state_, other.state_);
        flight_.swap(other.flight_);
        return *this;
    }
    ~flight_pin()
    {
        if (flight_)
            state_->unpin(*flight_);
    }

    explicit operator bool() const noexcept { return static_cast<bool>(flight_); }
    const flight_ptr<Threading>& get() const noexcept { return flight_; }
    std::span<const flight_ptr<Threading>> span() const noexcept { return {&flight_, 1}; }

private:
    state_type* state_ = nullptr;
    flight_ptr<Threading> flight_;
};

// Finds the flight of a key and pins it. If there is none, inserts the one that make() returns, an
// intrusive_ptr to a load_flight; that may be null. Throws the exceptions of make() and of
// comparing keys, and bad_alloc; then nothing is pinned.
template <class Cell, class Threading, class Key, class Equal, class Make>
flight_pin<Threading> find_flight(flight_state<Threading>& state, const Key& key, std::size_t hash,
                                  const Equal& equal, Make make)
{
    using typed = load_flight<Cell, Threading>;
    typename flight_state<Threading>::table::storage storage;
    boost::intrusive_ptr<typed> made;
    bool was_made = false;
    for (std::uint64_t seen = 0;;) {
        std::size_t storage_needed = 0;
        flight_pin<Threading> found(state,
                                    state.find(hash, seen, made.get(), storage, storage_needed));
        if (storage_needed != 0) {
            storage = flight_state<Threading>::table::make_storage(storage_needed);
        } else if (!found) {
            if (was_made)
                return found;
            was_made = true;
            made = make();
        } else if (found.get() == made) {
            return found;
        } else if (equal(static_cast<const typed&>(*found.get()).cell->key, key)) {
            if constexpr (!std::is_same_v<decltype(make()), std::nullptr_t>)
                state.count_joined();
            return found;
        } else {
            seen = found.get()->number;
        }
    }
}

} // namespace turnstile::inline v0_1::detail
