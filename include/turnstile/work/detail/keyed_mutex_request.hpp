// SPDX-License-Identifier: BSL-1.0
// The keys of keyed_mutex, its handles' access to them, and the requests of its operations.
//
// A request makes a node for its key when it is constructed, so that the key is copied once, and
// before anything is changed. When it is attempted, it finds the node of an equal key, or inserts
// its own. Keys are compared without the lock; the node is pinned meanwhile. Only a request that
// was attempted refers to the state, so one that was never started may outlive the object.
#pragma once

#include <turnstile/core/error.hpp>
#include <turnstile/detail/wait/start_wait.hpp>
#include <turnstile/work/detail/keyed_mutex_state.hpp>

#include <boost/assert.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace turnstile::inline v0_1::detail {

template <class Key>
class keyed_mutex_entry final : public keyed_mutex_node {
public:
    template <class K>
    keyed_mutex_entry(std::size_t h, K&& k) : keyed_mutex_node(h), key(std::forward<K>(k))
    {
    }
    const Key key;
};

// A node that is pinned while its key is compared.
template <class State>
class pinned_node {
public:
    pinned_node(State& state, keyed_mutex_node* n) noexcept : state_(state), node_(n) {}
    pinned_node(const pinned_node&) = delete;
    pinned_node& operator=(const pinned_node&) = delete;
    ~pinned_node()
    {
        if (node_)
            state_.unpin({&node_, 1});
    }
    keyed_mutex_node* get() const noexcept { return node_; }
    keyed_mutex_node* release() noexcept { return std::exchange(node_, nullptr); }

private:
    State& state_;
    keyed_mutex_node* node_;
};

// Finds the node of `key`, and pins it. If there is none, inserts, pins and locks `made`, unless
// that is null. Throws the exceptions of comparing keys, and bad_alloc; then nothing is pinned.
template <class Key, class State, class Equal>
keyed_mutex_node* find_key(State& state, const Key& key, std::size_t hash, const Equal& equal,
                           std::unique_ptr<keyed_mutex_entry<Key>>* made)
{
    typename State::table::storage storage;
    for (std::uint64_t seen = 0;;) {
        std::size_t storage_needed = 0;
        pinned_node<State> n(
            state, state.find(hash, seen, made ? made->get() : nullptr, storage, storage_needed));
        if (storage_needed != 0) {
            storage = State::table::make_storage(storage_needed);
            continue;
        }
        if (!n.get())
            return nullptr;
        if (made && n.get() == made->get())
            return made->release(), n.release();
        if (equal(static_cast<const keyed_mutex_entry<Key>&>(*n.get()).key, key))
            return n.release();
        seen = n.get()->number;
    }
}

// The part that the requests for one key and for several share.
template <class Owner, class Lock>
struct keyed_mutex_request_base {
    using executor_type = typename Owner::executor_type;
    using threading = typename Owner::threading_policy;
    using result_type = Lock;
    using waiter_type = keyed_mutex_waiter;
    using state_type = keyed_mutex_state<threading>;
    using entry = keyed_mutex_entry<typename Owner::key_type>;

    Owner* owner;
    state_type* state_ptr;

    const executor_type& executor() const noexcept { return owner->executor(); }
    state_type& state() const noexcept { return *state_ptr; }

protected:
    void check_strand() const noexcept { BOOST_ASSERT(&owner->state() == state_ptr); }
};

// A wait for the lock of one key.
template <class Owner, class Lock>
struct keyed_mutex_request : keyed_mutex_request_base<Owner, Lock> {
    using base = keyed_mutex_request_base<Owner, Lock>;
    using entry = typename base::entry;
    static constexpr request_traits traits{.refundable = true};

    template <class Key>
    keyed_mutex_request(Owner& o, Key&& key)
        : base{&o, o.state_pointer()},
          made_(std::make_unique<entry>(o.hash(key), std::forward<Key>(key)))
    {
    }
    keyed_mutex_request(keyed_mutex_request&& other) noexcept
        : base(other), made_(std::move(other.made_)), node_(std::exchange(other.node_, nullptr))
    {
    }
    // A copy has not been attempted.
    keyed_mutex_request(const keyed_mutex_request& other)
        : base(other),
          made_(other.made_ ? std::make_unique<entry>(other.made_->hash, other.made_->key)
                            : nullptr)
    {
    }
    keyed_mutex_request& operator=(const keyed_mutex_request&) = delete;
    ~keyed_mutex_request()
    {
        if (node_)
            this->state_ptr->unpin({&node_, 1});
    }

    wait_decision try_now()
    {
        this->check_strand();
        if (!node_) {
            const entry* const own = made_.get();
            node_ = find_key(*this->state_ptr, own->key, own->hash, this->owner->equal(), &made_);
            if (node_ == own)
                return wait_decision::granted();
            made_.reset();
        }
        return this->state_ptr->try_lock({&node_, 1}) ? wait_decision::granted()
                                                      : wait_decision::pending();
    }
    void give_back() const noexcept { this->state_ptr->unlock({&node_, 1}); }
    void prepare(keyed_mutex_waiter& w) const noexcept { w.nodes = {&node_, 1}; }
    Lock take_now() noexcept
    {
        return Lock(*this->state_ptr, static_cast<entry*>(std::exchange(node_, nullptr)));
    }

private:
    std::unique_ptr<entry> made_;      // until it is inserted, or another node is found
    keyed_mutex_node* node_ = nullptr; // pinned
};

// A wait for the locks of several keys. The first attempt makes a sorted list of their nodes.
template <class Owner, class Lock>
struct keyed_mutex_set_request : keyed_mutex_request_base<Owner, Lock> {
    using base = keyed_mutex_request_base<Owner, Lock>;
    using entry = typename base::entry;
    static constexpr request_traits traits{.refundable = true, .explains_refusal = true};

    template <class Range>
    keyed_mutex_set_request(Owner& o, Range&& keys) : base{&o, o.state_pointer()}
    {
        for (auto&& key : keys) {
            const typename Owner::key_type& k = key;
            made_.push_back(std::make_unique<entry>(o.hash(k), k));
        }
        nodes_.reserve(made_.size());
    }
    keyed_mutex_set_request(keyed_mutex_set_request&& other) noexcept
        : base(other), made_(std::move(other.made_)), nodes_(std::move(other.nodes_))
    {
        other.nodes_.clear();
    }
    // A copy has not been attempted.
    keyed_mutex_set_request(const keyed_mutex_set_request& other) : base(other)
    {
        for (const auto& e : other.made_)
            made_.push_back(std::make_unique<entry>(e->hash, e->key));
        nodes_.reserve(made_.size());
    }
    keyed_mutex_set_request& operator=(const keyed_mutex_set_request&) = delete;
    ~keyed_mutex_set_request()
    {
        if (!nodes_.empty())
            this->state_ptr->unpin(nodes_);
    }

    wait_decision try_now()
    {
        this->check_strand();
        if (made_.empty() && nodes_.empty())
            return wait_decision::refused(errc::invalid_argument);
        if (!made_.empty())
            find_all();
        return this->state_ptr->try_lock(nodes_) ? wait_decision::granted()
                                                 : wait_decision::pending();
    }
    void give_back() const noexcept { this->state_ptr->unlock(nodes_); }
    void prepare(keyed_mutex_waiter& w) const noexcept { w.nodes = nodes_; }
    Lock take_now() noexcept { return Lock(*this->state_ptr, std::exchange(nodes_, {})); }
    system_error refusal(errc code) const { return system_error(code, Owner::empty_list); }

private:
    // Pins the node of every key, once. A key that was inserted is unlocked again, because the
    // keys are locked in the order of their numbers, or all at once.
    void find_all()
    {
        for (auto& e : made_) {
            const entry* const own = e.get();
            nodes_.push_back(nullptr); // has been reserved
            try {
                nodes_.back() =
                    find_key(*this->state_ptr, own->key, own->hash, this->owner->equal(), &e);
            } catch (...) {
                nodes_.pop_back();
                throw;
            }
            if (nodes_.back() == own)
                this->state_ptr->unlock({&nodes_.back(), 1});
        }
        made_.clear();
        const auto by_number = [](const keyed_mutex_node* a, const keyed_mutex_node* b) {
            return a->number < b->number;
        };
        std::sort(nodes_.begin(), nodes_.end(), by_number);
        // unique() leaves the duplicates unspecified: unpin each before it is removed.
        std::size_t kept = 1;
        for (std::size_t i = 1; i != nodes_.size(); ++i) {
            if (nodes_[i] == nodes_[kept - 1])
                this->state_ptr->unpin({&nodes_[i], 1});
            else
                nodes_[kept++] = nodes_[i];
        }
        nodes_.resize(kept);
    }

    std::vector<std::unique_ptr<entry>> made_; // until the first attempt
    std::vector<keyed_mutex_node*> nodes_;     // pinned
};

} // namespace turnstile::inline v0_1::detail
